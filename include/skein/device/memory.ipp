// SPDX-License-Identifier: Apache-2.0
// The bodies of memory.hpp.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "memory.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace detail {
constexpr std::size_t large_page = 2 * 1024 * 1024;
}

SKEIN_INLINE void* detail::allocate_on_host(std::size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, bytes < large_page ? Memory<Cpu>::alignment : large_page, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (bytes >= large_page) (void)madvise(p, bytes / large_page * large_page, MADV_HUGEPAGE);  // advice: it may be refused
#endif
  return p;
}

// A part of a large page is not worth its division into small ones.
SKEIN_INLINE std::size_t detail::give_back_zeros([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__  // elsewhere MADV_DONTNEED does not make zeros
  const auto first = reinterpret_cast<std::uintptr_t>(p), end = (first + bytes) / large_page * large_page,
             begin = (first + large_page - 1) / large_page * large_page;
  if (begin < end && madvise(static_cast<char*>(p) + (begin - first), end - begin, MADV_DONTNEED) == 0) return end - begin;
#endif
  return 0;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
