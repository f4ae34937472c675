// SPDX-License-Identifier: Apache-2.0
// The bodies of message_ring.hpp.
#pragma once
#include "message_ring.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE MessageRing::MessageRing(MPI_Comm comm, int rank, int ranks, int tag, KeptBuffers& kept)
    : comm_(comm), rank_(rank), ranks_(ranks), tag_(tag), kept_(kept) {}

SKEIN_MPI_INLINE void MessageRing::begin(const CollectiveCall& o, char* data, std::size_t count, std::size_t bytes) {
  o_ = &o;
  data_ = data;
  count_ = static_cast<long>(count);
  const long piece = (count_ + ranks_ - 1) / ranks_;
  const long each = std::max<long>(1, static_cast<long>(bytes / o.signature.element));
  parts_ = std::max<long>(1, (piece + each - 1) / each);
  messages_ = 2 * (ranks_ - 1) * parts_;
  most_ = (o.bytes(static_cast<std::size_t>(piece / parts_ + 1)) + 63) / 64 * 64;
  asked_ = came_ = started_ = left_ = 0;
  kept_.reserve(most_ * window, 0);
  kept_.reserve_requests(static_cast<std::size_t>(window + messages_));
  start();
}

SKEIN_MPI_INLINE bool MessageRing::step() {
  const long before = came_ + left_;
  start();
  while (came_ < asked_ && test(received(came_))) {
    if (adds(came_)) add(came_);
    ++came_;
    start();
  }
  if (came_ == messages_)
    while (left_ < messages_ && test(sent(left_))) ++left_;
  return came_ + left_ != before;
}

SKEIN_MPI_INLINE void MessageRing::start() {
  for (; asked_ < std::min(messages_, came_ + window); ++asked_) {
    // What comes in the second half replaces what this rank has sent in the first.
    while (!adds(asked_) && left_ <= asked_ - messages_ / 2 && left_ < started_ && test(sent(left_))) ++left_;
    if (left_ <= asked_ - messages_ / 2) break;
    const plan::Range r = receives(asked_);
    check_mpi(MPI_Irecv(adds(asked_) ? staging(asked_) : at(r), size(r), MPI_BYTE, (rank_ + ranks_ - 1) % ranks_, tag_, comm_,
                        &received(asked_)),
              "all_reduce");
  }
  // What came in a step goes on in the next. Not more ahead than the next rank has receives for.
  for (; started_ < std::min(messages_, came_ + std::min(parts_, window)); ++started_) {
    const plan::Range r = sends(started_);
    check_mpi(MPI_Isend(at(r), size(r), MPI_BYTE, (rank_ + 1) % ranks_, tag_, comm_, &sent(started_)), "all_reduce");
  }
}

SKEIN_MPI_INLINE void MessageRing::add(long m) {
  const plan::Range r = receives(m);
  const void* from[] = {at(r), staging(m)};
  void* to[] = {at(r)};
  o_->pair(o_->functor, to, 1, from, 2, static_cast<std::size_t>(r.end - r.begin));
}

SKEIN_MPI_INLINE bool MessageRing::test(MPI_Request& request) const {
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "all_reduce");
  return done != 0;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
