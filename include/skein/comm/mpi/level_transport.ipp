// SPDX-License-Identifier: Apache-2.0
// The bodies of level_transport.hpp.
#pragma once
#include "level_transport.hpp"
#include "node_meeting.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE LevelTransport::~LevelTransport() {
  between_.reset();
  if (comm_ != MPI_COMM_NULL && !kept_ && mpi_runs()) free_together(comm_);
}

SKEIN_MPI_INLINE bool LevelTransport::create(MPI_Comm comm, MPI_Comm node, const CommOptions& options) {
  int rank = 0, nodes = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks_);
  MPI_Comm_rank(node, &place_);
  MPI_Comm_size(node, &places_);
  const int own[] = {places_, -places_};
  int most[2] = {};
  MPI_Allreduce(own, most, 2, MPI_INT, MPI_MAX, comm);
  if (most[0] != -most[1] || places_ == 1 || places_ == ranks_) return false;
  int good = MpiNodeMeeting{node}.make(segment_, place_, places_) ? 1 : 0, all = 0;
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
  if (!all) return false;
  check_mpi(MPI_Comm_split(comm, place_, rank, &comm_), "MPI_Comm_split");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &nodes);
  inside_.emplace(segment_, place_, places_);
  CommOptions slices = options;  // all places of a node send at once through one link: what is long for the link counts
  slices.doubling_bytes /= static_cast<std::size_t>(places_);
  slices.halving_bytes /= static_cast<std::size_t>(places_);
  between_.emplace(comm_, rank, nodes, slices);
  counts_.resize(static_cast<std::size_t>(places_));
  least_bytes_ = options.level_bytes;
  return true;
}

SKEIN_MPI_INLINE bool LevelTransport::takes(const CollectiveCall& o) const {
  return inside_ && o.signature.kind == Collective::AllReduce && NativeTransport::takes(o) && o.pair &&
         o.bytes(o.signature.count) >= least_bytes_;
}

SKEIN_MPI_INLINE void LevelTransport::begin(const CollectiveCall& o, std::uint64_t) {
  o_ = &o;
  for (int r = 0; r < places_; ++r)
    counts_[static_cast<std::size_t>(r)] = slice_of(o.signature.count, o.signature.element, r, places_).count;
  scatter();
}

SKEIN_MPI_INLINE void LevelTransport::keep() {
  if (between_) between_->keep();
  kept_ = true;
}

SKEIN_MPI_INLINE bool LevelTransport::step() {
  if (phase_ == Phase::Done) return false;
  if (phase_ == Phase::Between) {
    const bool moved = between_->step();
    if (between_->done()) gather();
    return moved;
  }
  try {
    const bool moved = inside_->step();
    if (!inside_->done()) return moved;
    if (phase_ == Phase::Scatter) exchange();
    else phase_ = Phase::Done;
    return true;
  } catch (const CommError& e) {
    throw MpiError(e.what());  // its ranks are the node's: the engine asks all for their calls and names those
  }
}

SKEIN_MPI_INLINE void LevelTransport::scatter() {
  phase_ = Phase::Scatter;
  call_ = *o_;
  call_.signature.kind = Collective::ReduceScatter;
  call_.signature.counts_hash = hash_bytes(counts_.data(), counts_.size() * sizeof(std::size_t));
  call_.counts = counts_.data();
  call_.fold = o_->pair;
  call_.recv = slice();
  inside_->begin(call_, calls_++);
}

SKEIN_MPI_INLINE void LevelTransport::exchange() {
  phase_ = Phase::Between;
  call_ = *o_;
  call_.signature.count = own().count;
  call_.send = call_.recv = slice();
  call_.finish = nullptr;
  between_->begin(call_, calls_);
}

SKEIN_MPI_INLINE void LevelTransport::gather() {
  if (o_->finish) o_->finish(slice(), own().count, ranks_);
  phase_ = Phase::Gather;
  call_ = *o_;
  call_.signature.kind = Collective::AllGather;
  call_.signature.reduction = 0;
  call_.signature.counts_hash = hash_bytes(counts_.data(), counts_.size() * sizeof(std::size_t));
  call_.counts = counts_.data();
  call_.fold = nullptr;
  call_.send = slice();
  inside_->begin(call_, calls_++);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
