// SPDX-License-Identifier: Apache-2.0
// What of an array is in memory.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {

/// Bytes of the whole pages of [p, p + bytes) that are there; a page of zeros that somebody has read counts too.
inline std::size_t resident_bytes(const void* p, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const std::size_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
  if (begin >= end) return 0;
  std::vector<unsigned char> pages((end - begin) / page);
  if (mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) != 0) return bytes;
  return page * static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char c) { return c & 1; }));
}

}  // namespace support
