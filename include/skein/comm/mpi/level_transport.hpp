// SPDX-License-Identifier: Apache-2.0
// Long all-reduces in native order where nodes have several ranks each: a reduce-scatter within the node through shared memory,
// an all-reduce of each slice between nodes, by the ranks that have the same place in their nodes, and an all-gather within the
// node. Of B bytes 2 (nodes - 1) / nodes B leave a node, as in a ring over all ranks, but in rounds that grow with the nodes
// alone, and what stays in a node passes no MPI. A state machine: step() never waits.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "native_transport.hpp"
#include "../node/shared_transport.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The transport of two levels, for the calls that it takes(). Values are added within each node in the order of its ranks, then
/// as NativeTransport does.
class LevelTransport {
 public:
  LevelTransport() = default;
  LevelTransport(const LevelTransport&) = delete;
  LevelTransport& operator=(const LevelTransport&) = delete;
  ~LevelTransport();

  /// Collective over `comm`; `node` are those of its ranks that share memory with this one. False, on all ranks alike, where
  /// nodes have one rank, or not all the same number, or give no memory.
  bool create(MPI_Comm comm, MPI_Comm node, const CommOptions& options);

  /// All-reduces that NativeTransport takes, from CommOptions::level_bytes on.
  bool takes(const CollectiveCall& o) const;

  /// Makes `o` the current call. It stays alive until step() says that it is done.
  void begin(const CollectiveCall& o, std::uint64_t);
  bool done() const { return phase_ == Phase::Done; }
  /// The communicator has failed: what MPI may still read or write must stay.
  void keep();

  /// Goes on where the others have; false where nothing could be done.
  bool step();

 private:
  enum class Phase { Scatter, Between, Gather, Done };

  Piece own() const { return slice_of(o_->signature.count, o_->signature.element, place_, places_); }
  char* slice() const { return o_->into() + o_->bytes(own().offset); }
  void scatter();
  void exchange();
  void gather();

  MPI_Comm comm_ = MPI_COMM_NULL;  // the ranks of this place
  Segment segment_;
  std::optional<SharedTransport> inside_;
  std::optional<NativeTransport> between_;
  int place_ = 0, places_ = 1, ranks_ = 1;
  std::size_t least_bytes_ = 0;
  std::vector<std::size_t> counts_;  // of the slices
  const CollectiveCall* o_ = nullptr;
  CollectiveCall call_;  // of the level that is at work
  std::uint64_t calls_ = 0;
  Phase phase_ = Phase::Done;
  bool kept_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "level_transport.ipp"
#endif
