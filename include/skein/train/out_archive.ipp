// SPDX-License-Identifier: Apache-2.0
// The bodies of out_archive.hpp.
#pragma once
#include "out_archive.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::vector<std::byte> OutArchive::take() {
  if (charged_ > bytes_.size() && charged_ - bytes_.size() > detail::memory_budget)
    refuse(
        text("its {} bytes stand for {} bytes of memory, more than readers allow (64 MiB beyond the bytes): store large data as "
             "tensor sections",
             bytes_.size(), charged_));
  charged_ = 0;
  return std::move(bytes_);
}

SKEIN_INLINE unsigned OutArchive::begin_object(unsigned version) {
  *this& std::uint32_t{version};
  if (++depth_ > detail::deepest) refuse("objects are nested deeper than 64");
  return version;
}

SKEIN_INLINE void OutArchive::put_count(std::size_t count, std::size_t memory) {
  *this& std::uint64_t{count};
  charged_ += count * memory;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
