// SPDX-License-Identifier: Apache-2.0
// All-reduces between nodes in an order of additions that the network likes: short ones by the tables of
// plan/collective_steps.hpp, long ones round a ring of messages; reduces to one rank by MPI_Ireduce. CommOptions can leave long
// ones to MPI_Iallreduce, where a machine's own MPI knows what its network can do best. A started call of MPI cannot be
// cancelled, so all of them work on buffers of this transport, or in memory that it can keep. A state machine: step() never
// waits.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "../../device/kept_memory.hpp"
#include "../../plan/collective_steps.hpp"
#include "../options.hpp"
#include "../tags.hpp"
#include "../work.hpp"
#include "api.hpp"
#include "kept_buffers.hpp"
#include "message_ring.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The transport of ReductionOrder::native, for the calls that it takes().
class NativeTransport {
 public:
  static constexpr int tag = tags::native_order;
  static constexpr std::size_t longest = std::size_t{32} << 20;  // bytes of a piece: the buffers are two of them

  NativeTransport(MPI_Comm comm, int rank, int ranks, const CommOptions& options);

  /// Broadcasts, and reductions with Sum, Mean, Max and Min of scalars to all ranks; to one rank those of types and operations
  /// that MPI has itself. A user's function need not commute, and a reduce-scatter, all-gather or all-to-all of messages between
  /// all ranks is as short as any.
  static bool takes(const CollectiveCall& o);

  /// Makes `o` the current call. It stays alive until step() says that it is done.
  void begin(const CollectiveCall& o, std::uint64_t);
  bool done() const { return phase_ == Phase::Done; }
  /// The communicator has failed: what MPI may still read or write must stay.
  void keep();

  /// Goes on where MPI has; false where nothing could be done.
  bool step();

 private:
  enum class Phase { Start, Exchange, Ring, Finish, Done };
  enum class Algorithm { Doubling, Halving, Ring, Mpi };

  const char* name() const { return collective_names[static_cast<int>(o_->signature.kind)].data(); }
  std::size_t count() const { return std::min(per_piece_, o_->signature.count - begin_); }
  std::size_t offset() const { return o_->bytes(begin_); }
  bool is_root() const { return rank_ == o_->signature.root; }
  bool receives() const;

  /// The MPI data type of a Sum or Mean of scalars that MPI_SUM adds as Sum does; MPI_DATATYPE_NULL for all others.
  static MPI_Datatype mpi_type(const Signature& s);
  /// By the piece, so that all ranks choose the same.
  Algorithm algorithm() const;
  /// f(table) of the table that is at work.
  template <class F> auto with_table(F&& f) const {
    const long n = static_cast<long>(count());
    switch (algorithm_) {
      case Algorithm::Doubling:
        return f(plan::RecursiveDoubling{ranks_, n});
      default:
        return f(plan::HalvingDoubling{ranks_, n});
    }
  }

  void start();
  void call_mpi(std::size_t bytes);
  /// Starts the table's next step in which this rank has something to do.
  void exchange();
  void receive_values();
  void send_values();
  /// f(part) for the messages that carry a range.
  template <class F> void each_message(plan::Range r, F&& f) const {
    const std::size_t bytes = static_cast<std::size_t>(size(r));
    const int parts = eager_bytes_ ? static_cast<int>((bytes + eager_bytes_ - 1) / eager_bytes_) : 1;
    for (int i = 0; i < parts; ++i) f(plan::piece_of(r, i, parts));
  }
  /// Where a table works on the current piece.
  char* work() { return outlives_ ? o_->into() + offset() : kept_.out(); }
  char* at(plan::Range r) { return work() + o_->bytes(static_cast<std::size_t>(r.begin)); }
  int size(plan::Range r) const { return static_cast<int>(o_->bytes(static_cast<std::size_t>(r.end - r.begin))); }
  /// The lower rank's values come first, so that both partners of an exchange compute the same.
  void add();
  void finish();

  MPI_Comm comm_;
  int rank_, ranks_;
  std::size_t message_, doubling_bytes_, halving_bytes_, eager_bytes_;
  KeptBuffers kept_;
  MessageRing ring_;
  const CollectiveCall* o_ = nullptr;
  std::size_t begin_ = 0, per_piece_ = 1;  // elements: done so far; of a piece
  Phase phase_ = Phase::Done;
  bool outlives_ = false;  // the caller's memory does: an arena's
  Algorithm algorithm_ = Algorithm::Mpi;
  plan::CollectiveStep now_{};
  int step_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "native_transport.ipp"
#endif
