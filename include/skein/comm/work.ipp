// SPDX-License-Identifier: Apache-2.0
// The bodies of work.hpp.
#pragma once
#include "work.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// A rank's slice of what all reduce, from all of them to those that receive.
inline void fold_own_slice(int rank, int ranks, OfRank<const CollectiveCall&> post, Pointers& p) {
  const CollectiveCall& own = post(rank);
  const Piece s = slice_of(own.signature.count, own.signature.element, rank, ranks);
  if (s.count == 0) return;
  const std::size_t at = own.bytes(s.offset);
  int targets = 0;
  for (int r = 0; r < ranks; ++r) {
    const CollectiveCall& o = post(r);
    p.from[static_cast<std::size_t>(r)] = o.from() + at;
    if (own.signature.kind == Collective::AllReduce || r == own.signature.root)
      p.to[static_cast<std::size_t>(targets++)] = o.into() + at;
  }
  own.fold(own.functor, p.to.data(), targets, p.from.data(), ranks, s.count);
}

SKEIN_INLINE void work_direct(int rank, int ranks, OfRank<const CollectiveCall&> post, Pointers& p) {
  const CollectiveCall& own = post(rank);
  const auto n = static_cast<std::size_t>(ranks);
  switch (own.signature.kind) {
    case Collective::Barrier:
      break;
    case Collective::Broadcast:
      if (rank != own.signature.root) copy_bytes(own.recv, post(own.signature.root).send, own.bytes(own.signature.count));
      break;
    case Collective::AllReduce:
    case Collective::Reduce:
      fold_own_slice(rank, ranks, post, p);
      break;
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

SKEIN_END_COLD
