// SPDX-License-Identifier: Apache-2.0
// The bodies of call_queue.hpp.
#pragma once
#include "call_queue.hpp"
#include "node_meeting.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE CallQueue::CallQueue(MPI_Comm comm, MPI_Comm node, int rank, const RankNames& names, const CommOptions& options,
                                      CallQueueOptions agreed)
    : options_(options), ranks_(names.size()), messages_(comm, rank, ranks_, options.message), check_(comm, rank, names) {
  if (ranks_ > 1 && agreed.shares_memory && agreed.one_node && MpiNodeMeeting{comm}.make(segment_, rank, ranks_))
    shared_.emplace(segment_, rank, names);
  if (ranks_ == 1 || !agreed.native || shared_) return;
  native_.emplace(comm, rank, ranks_, options);
  if (agreed.shares_memory) levels_.create(comm, node, options);
}

SKEIN_MPI_INLINE std::uint64_t CallQueue::push(const CollectiveCall& o) {
  CollectiveCall& call = calls_.next();
  call = o;
  if (shared_) call.signature.shared_at = shared_->shared_at(o);
  const bool begins = calls_.empty();
  const std::uint64_t number = calls_.push();
  if (ranks_ > 1 && !shared_) history_.add(o.signature);
  if (begins) begin();
  return number;
}

SKEIN_MPI_INLINE void CallQueue::keep() {
  if (native_) native_->keep();
  levels_.keep();
  messages_.keep();
  check_.keep();
  if (shared_) shared_->withdraw();
}

SKEIN_MPI_INLINE bool CallQueue::step() {
  if (idle()) return false;
  const CollectiveCall& o = current();
  bool moved = true, done = true;
  if (ranks_ == 1) alone_.run(o);
  else if (checking_) done = false, moved = checked(o);
  else with_transport(o, [&](auto& t) { moved = t.step(), done = t.done(); });
  if (!done) return moved;
  calls_.pop();
  if (!idle()) begin();
  return true;
}

SKEIN_MPI_INLINE void CallQueue::begin() {
  if (ranks_ == 1) return;
  const CollectiveCall& o = current();
  checking_ = options_.check && !shared_;
  if (checking_) check_.begin(o.signature, complete());
  else begin(o);
}

SKEIN_MPI_INLINE void CallQueue::begin(const CollectiveCall& o) {
  with_transport(o, [&](auto& t) { t.begin(o, complete()); });
}

SKEIN_MPI_INLINE bool CallQueue::checked(const CollectiveCall& o) {
  if (!check_.step()) return false;
  checking_ = false;
  begin(o);
  return true;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
