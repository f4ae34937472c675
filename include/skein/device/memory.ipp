// SPDX-License-Identifier: Apache-2.0
// The bodies of memory.hpp.
#pragma once
#include <sys/mman.h>

#include <cstdlib>

#include "memory.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE void* detail::allocate_on_host(std::size_t bytes) {
  constexpr std::size_t large_page = 2 * 1024 * 1024;
  void* p = nullptr;
  if (posix_memalign(&p, bytes < large_page ? Memory<Cpu>::alignment : large_page, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (bytes >= large_page) (void)madvise(p, bytes / large_page * large_page, MADV_HUGEPAGE);  // advice: it may be refused
#endif
  return p;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
