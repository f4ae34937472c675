// SPDX-License-Identifier: Apache-2.0
// The bodies of point_to_point.hpp.
#pragma once
#include "point_to_point.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE Ticket PointToPoint::start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
  std::size_t i = 0;
  while (i < pool_.size() && pool_[i].active) ++i;
  if (i == pool_.size()) pool_.emplace_back();
  Transfer& t = pool_[i];
  t = {true, false,       sends,           static_cast<char*>(data), bytes, 0, 0, peer < 0 ? MPI_ANY_SOURCE : peer,
       tag,  MPI_SUCCESS, MPI_REQUEST_NULL};
  next_piece(t);
  ++active_;
  return {0, static_cast<std::int32_t>(i), peer};
}

SKEIN_MPI_INLINE bool PointToPoint::test(Ticket& ticket) {
  Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
  if (!t.complete) advance(t);
  if (!t.complete) return false;
  ticket.peer = t.peer;
  t.active = false;
  --active_;
  int kind = 0;
  MPI_Error_class(t.result, &kind);
  if (kind == MPI_ERR_TRUNCATE)
    throw CommError(describe(t) + ": the message is longer than the receiver's span of " + std::to_string(t.bytes) + " bytes");
  check_mpi(t.result, t.sends ? "send" : "recv");
  if (t.done != t.bytes)
    throw CommError(describe(t) + ": the message has " + std::to_string(t.done) + " bytes, the receiver's span " +
                    std::to_string(t.bytes));
  return true;
}

SKEIN_MPI_INLINE bool PointToPoint::progress() {
  bool moved = false;
  if (active_ == 0) return false;
  for (Transfer& t : pool_)
    if (t.active && !t.complete) moved = advance(t) || moved;
  return moved;
}

SKEIN_MPI_INLINE std::string PointToPoint::describe(const Transfer& t) {
  return std::string(t.sends ? "send to " : "recv from ") + (t.peer < 0 ? "any rank" : "rank " + std::to_string(t.peer)) +
         " (tag " + std::to_string(t.tag) + ")";
}

SKEIN_MPI_INLINE bool PointToPoint::advance(Transfer& t) {
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
  t.done += got;
  t.complete = t.result != MPI_SUCCESS || t.done == t.bytes || got != t.piece;
  if (!t.complete) next_piece(t);
  return true;
}

SKEIN_MPI_INLINE void PointToPoint::next_piece(Transfer& t) {
  t.piece = std::min(message_, t.bytes - t.done);
  const int n = static_cast<int>(t.piece);
  t.result = t.sends ? MPI_Isend(t.data + t.done, n, MPI_BYTE, t.peer, t.tag, comm_, &t.request)
                     : MPI_Irecv(t.data + t.done, n, MPI_BYTE, t.peer, t.tag, comm_, &t.request);
  if (t.result != MPI_SUCCESS) t.complete = true;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
