// SPDX-License-Identifier: Apache-2.0
// The bodies of growing_array.hpp.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "growing_array.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE void* resize_memory(void* memory, std::size_t bytes_before, std::size_t bytes) {
  constexpr std::size_t least_pages = std::size_t{128} << 10;
  const bool pages_before = bytes_before >= least_pages, pages = bytes >= least_pages;
  const auto release = [&] {
    if (pages_before) ::munmap(memory, bytes_before);
    else std::free(memory);
  };
  if (bytes == 0) return release(), nullptr;
  void* found = nullptr;
  if (pages_before && pages) found = ::mremap(memory, bytes_before, bytes, MREMAP_MAYMOVE);
  else if (pages) found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  else found = pages_before ? std::malloc(bytes) : std::realloc(memory, bytes);
  if (found == nullptr || found == MAP_FAILED) throw MemoryError(bytes);
  if (pages_before != pages && memory) {
    std::memcpy(found, memory, std::min(bytes_before, bytes));
    release();
  }
  return found;
}

}  // namespace skein::inline SKEIN_ABI::data::detail
