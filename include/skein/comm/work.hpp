// SPDX-License-Identifier: Apache-2.0
// One rank's share of a collective where every rank can reach every buffer: the whole of ThreadComm's data movement.
#pragma once
#include <cstring>
#include <vector>

#include "collective_call.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Pointers of all ranks, kept so that no call allocates.
struct Pointers {
  explicit Pointers(int n) : from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n)) {}
  std::vector<const void*> from;
  std::vector<void*> to;
};

/// memmove for buffers that are the same or do not overlap. Not the library's: glibc 2.36 takes `rep movsb` for middling sizes,
/// which some processors do at 2 GB/s where plain vector moves reach 30.
inline void copy_bytes(void* to, const void* from, std::size_t n) {
  if (n == 0 || to == from) return;
  char* t = static_cast<char*>(to);
  const char* f = static_cast<const char*>(from);
#if defined(__GNUC__) || defined(__clang__)
  typedef char Vector __attribute__((vector_size(32), aligned(1), may_alias));
  for (; n >= 128; n -= 128, t += 128, f += 128) {
    const Vector* x = reinterpret_cast<const Vector*>(f);
    Vector* y = reinterpret_cast<Vector*>(t);
    const Vector a = x[0], b = x[1], c = x[2], d = x[3];
    y[0] = a, y[1] = b, y[2] = c, y[3] = d;
    asm volatile("" ::: "memory");  // else the compiler makes a memcpy of the loop
  }
#endif
  std::memcpy(t, f, n);
}

/// A core of this processor that reads a line which another has written gets it for writing too (AMD's). Elsewhere it has to ask.
inline bool reads_take_lines() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}
/// Asks for the cache lines of some bytes as one that is going to write to them.
inline void take_lines([[maybe_unused]] const char* at, [[maybe_unused]] std::size_t bytes) {
#if defined(__GNUC__) || defined(__clang__)
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, 1, 3);
#endif
}

/// `post(r)` is rank r's call. Reductions: each rank folds its slice of all buffers and writes it to all that want it.
void work_direct(int rank, int ranks, OfRank<const CollectiveCall&> post, Pointers& p);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "work.ipp"
#endif
