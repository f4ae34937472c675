// SPDX-License-Identifier: Apache-2.0
// The bodies of hash.hpp.
#pragma once
#include "hash.hpp"

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void Hash64::update(const void* bytes, std::size_t count) {
  const unsigned char* p = static_cast<const unsigned char*>(bytes);
  total_ += count;
  if (filled_ > 0) {
    const std::size_t n = count < 32 - filled_ ? count : 32 - filled_;
    std::memcpy(pending_ + filled_, p, n);
    filled_ += n;
    p += n;
    count -= n;
    if (filled_ < 32) return;
    stripe(pending_);
    filled_ = 0;
  }
  for (; count >= 32; p += 32, count -= 32) stripe(p);
  if (count > 0) std::memcpy(pending_, p, filled_ = count);
}

SKEIN_INLINE std::uint64_t Hash64::value() const {
  std::uint64_t h = prime5;
  if (total_ >= 32) {
    h = rotate(lane_[0], 1) + rotate(lane_[1], 7) + rotate(lane_[2], 12) + rotate(lane_[3], 18);
    for (const std::uint64_t lane : lane_) h = (h ^ round(0, lane)) * prime1 + prime4;
  }
  h += total_;
  const unsigned char *p = pending_, *end = pending_ + filled_;
  for (; p + 8 <= end; p += 8) h = rotate(h ^ round(0, load64(p)), 27) * prime1 + prime4;
  if (p + 4 <= end) {
    h = rotate(h ^ load32(p) * prime1, 23) * prime2 + prime3;
    p += 4;
  }
  for (; p < end; ++p) h = rotate(h ^ *p * prime5, 11) * prime1;
  h = (h ^ h >> 33) * prime2;
  h = (h ^ h >> 29) * prime3;
  return h ^ h >> 32;
}

SKEIN_INLINE std::uint64_t hash64(const void* bytes, std::size_t count) {
  Hash64 hash;
  hash.update(bytes, count);
  return hash.value();
}

}  // namespace skein::inline SKEIN_ABI::train
