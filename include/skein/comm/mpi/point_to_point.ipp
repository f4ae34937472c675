// SPDX-License-Identifier: Apache-2.0
// The bodies of point_to_point.hpp.
#pragma once
#include "../../device/kept_memory.hpp"
#include "point_to_point.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE Ticket PointToPoint::start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
  const std::size_t i = free_place(pool_);
  MpiTransfer& t = pool_[i] = {};
  static_cast<Transfer&>(t) = {true, false, sends, false, static_cast<char*>(data), bytes, 0, peer, tag, ++started_};
  t.waits = is_held_up(t);
  if (!t.waits) next_piece(t);
  ++active_;
  return {0, static_cast<std::int32_t>(i), peer};
}

SKEIN_MPI_INLINE bool PointToPoint::test(Ticket& ticket) {
  MpiTransfer& t = pool_[static_cast<std::size_t>(ticket.message)];
  if (!t.complete && !kept_) advance(t);
  if (!t.complete) return false;
  ticket.peer = t.peer;
  t.active = false;
  --active_;
  int kind = 0;
  MPI_Error_class(t.result, &kind);
  if (kind == MPI_ERR_TRUNCATE) t.came = t.bytes + 1;
  else check_mpi(t.result, t.sends ? "send" : "recv");
  t.end(names_);
  return true;
}

SKEIN_MPI_INLINE bool PointToPoint::progress() {
  bool moved = false;
  if (active_ == 0 || kept_) return false;
  for (MpiTransfer& t : pool_)
    if (t.active && !t.complete) moved = advance(t) || moved;
  return moved;
}

SKEIN_MPI_INLINE void PointToPoint::keep() {
  kept_ = true;
  std::vector<MPI_Request> receives;
  for (const MpiTransfer& t : pool_) {
    if (!t.active || t.complete || t.waits) continue;
    KeptMemory::keep(t.data);
    if (!t.sends) receives.push_back(t.request);
  }
  if (mpi_runs()) (void)cancel_receives(receives.data(), receives.size());
}

SKEIN_MPI_INLINE bool PointToPoint::is_held_up(const MpiTransfer& t) const {
  return std::any_of(pool_.begin(), pool_.end(), [&](const MpiTransfer& u) {
    const bool more = u.waits || u.piece == message_;
    return u.active && !u.complete && more && u.order < t.order && u.sends == t.sends && u.tag == t.tag &&
           (u.takes(t.peer) || t.peer < 0);
  });
}

SKEIN_MPI_INLINE bool PointToPoint::advance(MpiTransfer& t) {
  if (t.waits) {
    t.waits = is_held_up(t);
    if (!t.waits) next_piece(t);
    return !t.waits;
  }
  if (t.ends && !end_is_there(t)) return t.complete;
  int done = 0;
  MPI_Status status;
  t.result = MPI_Test(&t.request, &done, &status);
  if (t.result == MPI_SUCCESS && !done) return false;
  std::size_t got = t.piece;
  if (!t.sends && t.result == MPI_SUCCESS) {
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    got = static_cast<std::size_t>(count);
    t.peer = status.MPI_SOURCE;
  }
  t.came += got;
  t.complete = t.result != MPI_SUCCESS || got < message_;
  if (!t.complete) next_piece(t);
  return true;
}

SKEIN_MPI_INLINE bool PointToPoint::end_is_there(MpiTransfer& t) {
  int there = 0, count = 0;
  MPI_Status status;
  t.result = MPI_Iprobe(t.peer, t.tag, comm_, &there, &status);
  if (t.result == MPI_SUCCESS && there) MPI_Get_count(&status, MPI_BYTE, &count);
  if (count > 0) t.came = t.bytes + 1;
  t.complete = t.result != MPI_SUCCESS || count > 0;
  if (!there || t.complete) return false;
  t.ends = false, t.piece = 0;
  t.result = MPI_Irecv(t.data + t.came, 0, MPI_BYTE, t.peer, t.tag, comm_, &t.request);
  return true;
}

SKEIN_MPI_INLINE void PointToPoint::next_piece(MpiTransfer& t) {
  t.ends = !t.sends && t.came > 0 && t.came == t.bytes;
  if (t.ends) return;
  t.piece = std::min(message_, t.bytes - t.came);
  const int n = static_cast<int>(t.piece), from = t.peer < 0 ? MPI_ANY_SOURCE : t.peer;
  t.result = t.sends ? MPI_Isend(t.data + t.came, n, MPI_BYTE, t.peer, t.tag, comm_, &t.request)
                     : MPI_Irecv(t.data + t.came, n, MPI_BYTE, from, t.tag, comm_, &t.request);
  if (t.result != MPI_SUCCESS) t.complete = true;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
