// SPDX-License-Identifier: Apache-2.0
// A message that a rank has started, as the transports which match messages themselves keep it until it has been seen complete.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "../core/error.hpp"
#include "rank_names.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What is said of a message of another length than the span that it came to.
inline std::string length_text(std::size_t came, std::size_t span) {
  return skein::text("the message has {} bytes, the receiver's span {}", came, span);
}

/// A started send or receive, in a pool of its transport's.
struct Transfer {
  bool active = false, complete = false, sends = false, matched = false;
  char* data = nullptr;
  std::size_t bytes = 0, came = 0;
  int peer = 0, tag = 0;  // peer: -1, any rank
  std::uint64_t order = 0;

  /// A receive that no message has been given to.
  bool is_open() const { return active && !sends && !complete && !matched; }
  /// Whether it takes messages of that rank.
  bool takes(int from) const { return peer < 0 || peer == from; }
  /// "recv from rank 1 (tag 3)".
  std::string text(const RankNames& names) const {
    return skein::text("{}{} (tag {})", (sends ? "send to " : "recv from "), names.name(peer), tag);
  }
  /// A complete one has been seen, and its place is free. Throws CommError where the message had another length.
  void end(const RankNames& names) {
    active = false;
    if (sends || came == bytes) return;
    if (came < bytes) throw CommError(text(names) + ": " + length_text(came, bytes));
    throw CommError(skein::text("{}: the message is longer than the receiver's span of {} bytes", text(names), bytes));
  }
};

/// Rank r may be the other side of a message of rank `own` whose peer is `peer` (-1: any rank): it is not the rank itself.
inline bool may_be_peer(int peer, int own, int r) { return r != own && (peer < 0 || peer == r); }

/// The index of a free place in the pool, which grows where there is none.
template <class Pool> std::size_t free_place(Pool& pool) {
  std::size_t i = 0;
  while (i < pool.size() && pool[i].active) ++i;
  if (i == pool.size()) pool.emplace_back();
  return i;
}
/// The oldest open receive that a message fits; null where there is none.
template <class Pool> Transfer* receiver_of(Pool& pool, int from, int tag) {
  Transfer* oldest = nullptr;
  for (Transfer& t : pool)
    if (t.is_open() && t.takes(from) && t.tag == tag && (!oldest || t.order < oldest->order)) oldest = &t;
  return oldest;
}

}  // namespace skein::inline SKEIN_ABI::comm
