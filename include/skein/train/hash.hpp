// SPDX-License-Identifier: Apache-2.0
// The 64-bit hash of checkpoint sections: XXH64 by Yann Collet (xxHash specification 0.1.1), seed 0, written from the
// specification; several GB/s. It finds accidents (flipped bits, torn writes), not forgery: it is no cryptographic hash.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// XXH64 in pieces: the value does not depend on how the bytes were cut.
class Hash64 {
 public:
  void update(const void* bytes, std::size_t count);

  std::uint64_t value() const;

 private:
  static constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87ull, prime2 = 0xC2B2AE3D27D4EB4Full, prime3 = 0x165667B19E3779F9ull,
                                 prime4 = 0x85EBCA77C2B2AE63ull, prime5 = 0x27D4EB2F165667C5ull;
  static std::uint64_t rotate(std::uint64_t x, int by) { return x << by | x >> (64 - by); }
  static std::uint64_t round(std::uint64_t lane, std::uint64_t word) { return rotate(lane + word * prime2, 31) * prime1; }
  static std::uint64_t load64(const unsigned char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
  }
  static std::uint64_t load32(const unsigned char* p) {
    return p[0] | static_cast<std::uint64_t>(p[1]) << 8 | static_cast<std::uint64_t>(p[2]) << 16 |
           static_cast<std::uint64_t>(p[3]) << 24;
  }
  void stripe(const unsigned char* p) {
    for (int i = 0; i < 4; ++i) lane_[i] = round(lane_[i], load64(p + 8 * i));
  }

  std::uint64_t lane_[4] = {prime1 + prime2, prime2, 0, 0 - prime1};
  unsigned char pending_[32] = {};
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

/// The hash of one block.
std::uint64_t hash64(const void* bytes, std::size_t count);

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "hash.ipp"
#endif
