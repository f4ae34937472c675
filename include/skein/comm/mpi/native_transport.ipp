// SPDX-License-Identifier: Apache-2.0
// The bodies of native_transport.hpp.
#pragma once
#include "native_transport.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE NativeTransport::NativeTransport(MPI_Comm comm, int rank, int ranks, const CommOptions& options)
    : comm_(comm), rank_(rank), ranks_(ranks), message_(std::clamp<std::size_t>(options.message, 4096, longest)),
      doubling_bytes_(options.doubling_bytes), halving_bytes_(options.halving_bytes), eager_bytes_(options.eager_bytes),
      ring_(comm, rank, ranks, tag, kept_) {}

SKEIN_MPI_INLINE bool NativeTransport::takes(const CollectiveCall& o) {
  const Signature& s = o.signature;
  if (s.kind == Collective::Broadcast) return true;
  return (s.kind == Collective::AllReduce || (s.kind == Collective::Reduce && mpi_type(s) != MPI_DATATYPE_NULL)) &&
         s.reduction != 0 && s.reduction != 5 && s.scalar != 0;
}

SKEIN_MPI_INLINE void NativeTransport::begin(const CollectiveCall& o, std::uint64_t) {
  o_ = &o;
  begin_ = 0;
  phase_ = Phase::Start;
  outlives_ = o.send == o.recv && KeptMemory::holds(o.recv, o.bytes(o.signature.count));
  per_piece_ = std::max<std::size_t>(1, message_ / o.signature.element);
}

SKEIN_MPI_INLINE void NativeTransport::keep() {
  if (o_ && outlives_ && phase_ != Phase::Done) KeptMemory::keep(o_->recv);
}

SKEIN_MPI_INLINE bool NativeTransport::step() {
  if (phase_ == Phase::Ring) {
    const bool moved = ring_.step();
    if (ring_.done()) phase_ = Phase::Finish;
    return moved;
  }
  if (!kept_.complete(name())) return false;
  switch (phase_) {
    case Phase::Start:
      start();
      break;
    case Phase::Exchange:
      if (now_.adds) add();
      ++step_;
      exchange();
      break;
    case Phase::Finish:
      finish();
      break;
    case Phase::Ring:
    case Phase::Done:
      return false;
  }
  return true;
}

SKEIN_MPI_INLINE bool NativeTransport::receives() const {
  const Collective kind = o_->signature.kind;
  return kind == Collective::AllReduce || (kind == Collective::Reduce) == is_root();
}

SKEIN_MPI_INLINE MPI_Datatype NativeTransport::mpi_type(const Signature& s) {
  if (s.reduction != 1 && s.reduction != 2) return MPI_DATATYPE_NULL;
  const MPI_Datatype of[] = {MPI_DATATYPE_NULL, MPI_FLOAT,   MPI_DOUBLE,   MPI_INT8_T,  MPI_UINT8_T, MPI_INT16_T,
                             MPI_UINT16_T,      MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T};
  return s.scalar < std::size(of) ? of[s.scalar] : MPI_DATATYPE_NULL;
}

SKEIN_MPI_INLINE NativeTransport::Algorithm NativeTransport::algorithm() const {
  const Signature& s = o_->signature;
  const std::size_t bytes = o_->bytes(count());
  if (s.kind != Collective::AllReduce) return Algorithm::Mpi;
  if (bytes <= doubling_bytes_) return Algorithm::Doubling;
  const std::size_t part = bytes / static_cast<std::size_t>(ranks_);
  if (part <= halving_bytes_ && std::has_single_bit(static_cast<unsigned>(ranks_))) return Algorithm::Halving;
  return eager_bytes_ > 0 || mpi_type(s) == MPI_DATATYPE_NULL ? Algorithm::Ring : Algorithm::Mpi;
}

SKEIN_MPI_INLINE void NativeTransport::start() {
  const CollectiveCall& o = *o_;
  const std::size_t bytes = o.bytes(count());
  phase_ = Phase::Finish;
  if (bytes == 0) return;
  algorithm_ = algorithm();
  if (algorithm_ == Algorithm::Mpi) return call_mpi(bytes);
  kept_.reserve(algorithm_ == Algorithm::Ring ? 0 : bytes, outlives_ ? 0 : bytes);
  if (!outlives_) copy_bytes(work(), o.from() + offset(), bytes);
  if (algorithm_ == Algorithm::Ring) {
    phase_ = Phase::Ring;
    ring_.begin(o, work(), count(), eager_bytes_ ? eager_bytes_ : bytes);
    return;
  }
  step_ = 0;
  exchange();
}

SKEIN_MPI_INLINE void NativeTransport::call_mpi(std::size_t bytes) {
  const CollectiveCall& o = *o_;
  const int n = static_cast<int>(count()), root = o.signature.root;
  kept_.reserve(outlives_ ? 0 : bytes, bytes);
  if (o.signature.kind == Collective::Broadcast) {
    if (is_root()) copy_bytes(kept_.out(), o.from() + offset(), bytes);
    check_mpi(MPI_Ibcast(kept_.out(), static_cast<int>(bytes), MPI_BYTE, root, comm_, kept_.next_request(true)), name());
    return;
  }
  const char* const own = outlives_ ? o.from() + offset() : kept_.in();
  if (!outlives_) copy_bytes(kept_.in(), o.from() + offset(), bytes);
  const MPI_Datatype type = mpi_type(o.signature);
  MPI_Request* const request = kept_.next_request(true);
  // Not MPI_IN_PLACE: Open MPI 4.1 then takes another algorithm, up to four times slower.
  check_mpi(o.signature.kind == Collective::AllReduce ? MPI_Iallreduce(own, kept_.out(), n, type, MPI_SUM, comm_, request)
                                                      : MPI_Ireduce(own, kept_.out(), n, type, MPI_SUM, root, comm_, request),
            name());
}

SKEIN_MPI_INLINE void NativeTransport::exchange() {
  const int steps = with_table([](const auto& table) { return table.steps(); });
  for (; step_ < steps; ++step_) {
    now_ = with_table([&](const auto& table) { return table.at(rank_, step_); });
    if (now_.from >= 0) receive_values();
    if (now_.to >= 0) send_values();
    if (now_.from >= 0 || now_.to >= 0) {
      phase_ = Phase::Exchange;
      return;
    }
  }
  phase_ = Phase::Finish;
}

SKEIN_MPI_INLINE void NativeTransport::receive_values() {
  char* const into = now_.adds ? kept_.in() : at(now_.receive);
  each_message(now_.receive, [&](plan::Range r) {
    char* const to = into + o_->bytes(static_cast<std::size_t>(r.begin - now_.receive.begin));
    check_mpi(MPI_Irecv(to, size(r), MPI_BYTE, now_.from, tag, comm_, kept_.next_request()), name());
  });
}

SKEIN_MPI_INLINE void NativeTransport::send_values() {
  each_message(now_.send, [&](plan::Range r) {
    check_mpi(MPI_Isend(at(r), size(r), MPI_BYTE, now_.to, tag, comm_, kept_.next_request()), name());
  });
}

SKEIN_MPI_INLINE void NativeTransport::add() {
  if (now_.from < 0) return;
  char* const own = at(now_.receive);
  const bool first = rank_ < now_.from;
  const void* from[] = {first ? own : kept_.in(), first ? kept_.in() : own};
  void* to[] = {own};
  o_->pair(o_->functor, to, 1, from, 2, static_cast<std::size_t>(now_.receive.end - now_.receive.begin));
}

SKEIN_MPI_INLINE void NativeTransport::finish() {
  const CollectiveCall& o = *o_;
  const std::size_t n = count();
  if (receives() && n) {
    char* const result = algorithm_ == Algorithm::Mpi ? kept_.out() : work();
    if (o.finish) o.finish(result, n, ranks_);
    copy_bytes(o.into() + offset(), result, o.bytes(n));  // nothing where they are one
  }
  begin_ += n;
  phase_ = begin_ == o.signature.count ? Phase::Done : Phase::Start;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
