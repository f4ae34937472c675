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

/// `post(r)` is rank r's Operation. Reductions: each rank folds its slice of all buffers and writes it to all that want it.
template <class PostOf> void work_direct(int rank, int ranks, PostOf&& post, Pointers& p) {
  const CollectiveCall& own = post(rank);
  const auto n = static_cast<std::size_t>(ranks);
  switch (own.signature.kind) {
    case Collective::Barrier:
      break;
    case Collective::Broadcast:
      if (rank != own.signature.root) copy_bytes(own.recv, post(own.signature.root).send, own.bytes(own.signature.count));
      break;
    case Collective::AllReduce:
    case Collective::Reduce: {
      const Piece s = slice_of(own.signature.count, own.signature.element, rank, ranks);
      if (s.count == 0) break;
      const std::size_t at = own.bytes(s.offset);
      int targets = 0;
      for (std::size_t r = 0; r < n; ++r) {
        const CollectiveCall& o = post(static_cast<int>(r));
        p.from[r] = o.from() + at;
        if (own.signature.kind == Collective::AllReduce || static_cast<int>(r) == own.signature.root)
          p.to[static_cast<std::size_t>(targets++)] = o.into() + at;
      }
      own.fold(own.functor, p.to.data(), targets, p.from.data(), ranks, s.count);
      break;
    }
    case Collective::ReduceScatter: {
      const Piece s = own.piece(rank);
      for (std::size_t r = 0; r < n; ++r) p.from[r] = post(static_cast<int>(r)).from() + own.bytes(s.offset);
      p.to[0] = own.recv;
      if (s.count) own.fold(own.functor, p.to.data(), 1, p.from.data(), ranks, s.count);
      break;
    }
    case Collective::AllGather:
      for (int r = 0; r < ranks; ++r) {
        const Piece s = own.piece(r);
        copy_bytes(own.into() + own.bytes(s.offset), post(r).send, own.bytes(s.count));
      }
      break;
    case Collective::AllToAll:
      for (int r = 0; r < ranks; ++r)
        copy_bytes(own.into() + own.bytes(own.piece(r).offset), post(r).from() + own.bytes(own.piece(rank).offset),
                   own.bytes(own.signature.count));
      break;
  }
}

}  // namespace skein::inline SKEIN_ABI::comm
