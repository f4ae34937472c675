// SPDX-License-Identifier: Apache-2.0
// The bodies of message_transport.hpp.
#pragma once
#include <utility>

#include "../../device/kept_memory.hpp"
#include "message_transport.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE MessageTransport::MessageTransport(MPI_Comm comm, int rank, int ranks, std::size_t message)
    : comm_(comm), rank_(rank), ranks_(ranks), message_(std::clamp<std::size_t>(message, 4096, std::size_t{1} << 30)),
      pointers_(ranks) {
  requests_.reserve(2 * static_cast<std::size_t>(ranks));
}

SKEIN_MPI_INLINE void MessageTransport::begin(const CollectiveCall& o, std::uint64_t) {
  o_ = &o;
  piece_ = 0;
  phase_ = Exchange;
  const Signature& s = o.signature;
  const bool buffered = o.fold || s.kind == Collective::Broadcast;
  const std::size_t limit =
      std::max<std::size_t>(s.element, buffered ? std::min<std::size_t>(message_, std::size_t{8} << 20) : message_);
  std::size_t most = s.count;
  per_piece_ = std::max<std::size_t>(1, limit / s.element);
  if (s.kind == Collective::AllGather || s.kind == Collective::AllToAll || s.kind == Collective::ReduceScatter)
    most = o.largest_piece(ranks_);
  if (s.kind == Collective::ReduceScatter) per_piece_ = std::max<std::size_t>(1, per_piece_ / static_cast<std::size_t>(ranks_));
  whole_ = o.bytes(s.count) <= 8192;
  pieces_ = most == 0 || s.kind == Collective::Barrier ? 1 : (most + per_piece_ - 1) / per_piece_;
}

SKEIN_MPI_INLINE void MessageTransport::keep() {
  if (!o_ || done() || requests_.empty()) return;
  if (mpi_runs()) (void)cancel_receives(requests_.data(), receives_);
  KeptMemory::keep(o_->send);
  KeptMemory::keep(o_->recv);
  static auto* const kept = new std::vector<std::vector<char>>;  // never destroyed, as MPI may be at work until the process ends
  kept->push_back(std::exchange(scratch_, {}));
}

SKEIN_MPI_INLINE bool MessageTransport::step() {
  if (!requests_.empty() && !test_all(requests_, is_collective(), name())) return false;
  receives_ = 0;
  switch (phase_) {
    case Exchange:
      exchange();
      phase_ = Fold;
      break;
    case Fold:
      fold();
      phase_ = Finish;
      break;
    case Finish:
      phase_ = Exchange;
      ++piece_;
      break;
  }
  return true;
}

SKEIN_MPI_INLINE void MessageTransport::send(const void* data, std::size_t bytes, int to) {
  requests_.emplace_back();
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &requests_.back()), name());
}

SKEIN_MPI_INLINE void MessageTransport::recv(void* data, std::size_t bytes, int from) {
  requests_.emplace_back();
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, comm_, &requests_.back()), name());
  receives_ = requests_.size();  // they go before the sends
}

SKEIN_MPI_INLINE Piece MessageTransport::part(Piece whole) const {
  const std::size_t begin = std::min(whole.count, piece_ * per_piece_), end = std::min(whole.count, begin + per_piece_);
  return {whole.offset + begin, end - begin};
}

SKEIN_MPI_INLINE Piece MessageTransport::slice(int r) const {
  const Piece c = part({0, o_->signature.count});
  if (whole_) return c;
  const Piece s = slice_of(c.count, o_->signature.element, r, ranks_);
  return {c.offset + s.offset, s.count};
}

SKEIN_MPI_INLINE void MessageTransport::need_scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
}

SKEIN_MPI_INLINE void MessageTransport::exchange() {
  const CollectiveCall& o = *o_;
  switch (o.signature.kind) {
    case Collective::Barrier:
      requests_.emplace_back();
      check_mpi(MPI_Ibarrier(comm_, &requests_.back()), "barrier");
      break;
    case Collective::Broadcast:
      broadcast();
      break;
    case Collective::AllReduce:
    case Collective::Reduce:
      gather_slices([&](int q) { return slice(q); });
      break;
    case Collective::ReduceScatter:
      gather_slices([&](int q) { return part(o.piece(q)); });
      break;
    case Collective::AllGather: {
      const Piece own = part({0, o.piece(rank_).count});
      collect_pieces([&](int) { return own; });
      break;
    }
    case Collective::AllToAll:
      collect_pieces([&](int q) { return part(o.piece(q)); });
      break;
  }
}

SKEIN_MPI_INLINE void MessageTransport::broadcast() {
  const CollectiveCall& o = *o_;
  const Piece c = part({0, o.signature.count});
  const std::size_t bytes = o.bytes(c.count);
  char* data = o.into() + o.bytes(c.offset);
  outlives_ = KeptMemory::holds(data, bytes);
  if (!outlives_) {
    need_scratch(bytes);
    if (rank_ == o.signature.root) copy_bytes(scratch_.data(), data, bytes);
    data = scratch_.data();
  }
  requests_.emplace_back();
  check_mpi(MPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, o.signature.root, comm_, &requests_.back()), "broadcast");
}

SKEIN_MPI_INLINE void MessageTransport::fold() {
  const CollectiveCall& o = *o_;
  if (o.signature.kind == Collective::Broadcast && !outlives_ && rank_ != o.signature.root) {
    const Piece c = part({0, o.signature.count});
    copy_bytes(o.into() + o.bytes(c.offset), scratch_.data(), o.bytes(c.count));
  }
  if (!o.fold) return;
  const bool scatters = o.signature.kind == Collective::ReduceScatter;
  const Piece own = scatters ? part(o.piece(rank_)) : slice(rank_);
  const std::size_t bytes = o.bytes(own.count);
  for (int r = 0; r < ranks_; ++r)
    pointers_.from[static_cast<std::size_t>(r)] = r == rank_ ? o.from() + o.bytes(own.offset) : scratch(r, bytes);
  char* result = receives() ? o.into() + (scatters ? o.bytes(part({0, o.piece(rank_).count}).offset) : o.bytes(own.offset))
                            : scratch(ranks_, bytes);
  pointers_.to[0] = result;
  if (own.count) o.fold(o.functor, pointers_.to.data(), 1, pointers_.from.data(), ranks_, own.count);
  if (scatters || whole_) return;
  if (receives())
    others([&](int q) {
      if (const Piece c = slice(q); c.count) recv(o.into() + o.bytes(c.offset), o.bytes(c.count), q);
    });
  if (own.count == 0) return;
  if (o.signature.kind == Collective::AllReduce) others([&](int q) { send(result, bytes, q); });
  else if (!receives()) send(result, bytes, o.signature.root);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
