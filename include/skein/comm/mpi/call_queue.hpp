// SPDX-License-Identifier: Apache-2.0
// The collectives of one MpiComm rank: a queue of calls, worked on in their order by the transport that fits: shared memory where
// all ranks are on one node, MPI's own reductions where the order is native (within nodes shared memory before), messages
// elsewhere. Never waits.
#pragma once
#include <optional>

#include "../call_ring.hpp"
#include "../options.hpp"
#include "../self/self_comm.hpp"
#include "call_history.hpp"
#include "level_transport.hpp"
#include "message_transport.hpp"
#include "native_transport.hpp"
#include "../node/shared_transport.hpp"
#include "signature_check.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// What all ranks have agreed on: the order of reductions between nodes is MPI's own; ranks of a node share memory; all are on
/// one.
struct CallQueueOptions {
  bool native = false, shares_memory = false, one_node = false;
};

/// Where two transports fit, a call goes through shared memory before MPI, and in native order before
/// messages.
class CallQueue {
 public:
  /// Collective over `comm`. `node`: its ranks on this node. `options` are the engine's, and may change.
  CallQueue(MPI_Comm comm, MPI_Comm node, int rank, const RankNames& names, const CommOptions& options, CallQueueOptions agreed);

  std::uint64_t started() const { return calls_.started(); }
  std::uint64_t complete() const { return calls_.complete(); }
  bool full() const { return calls_.full(); }
  bool idle() const { return calls_.empty(); }
  /// The oldest call that is not complete.
  const CollectiveCall& current() const { return calls_.oldest(); }
  const CallHistory& history() const { return history_; }

  bool native() const { return native_.has_value(); }
  bool shares_memory() const { return shared_.has_value(); }
  Segment& segment() { return segment_; }
  const Segment& segment() const { return segment_; }
  /// The transport that works on the current call, where that is shared memory.
  SharedTransport* through_memory() { return !idle() && shared_ ? &*shared_ : nullptr; }

  /// All-reduces in these pages copy nothing; where the queue shares memory.
  void add(const std::shared_ptr<NodePages>& pages) { shared_->add(pages); }

  /// Adds a call; returns its number, which complete() reaches.
  std::uint64_t push(const CollectiveCall& o);
  /// The communicator has failed: nothing is worked on any more, and what MPI may still read or write stays.
  void keep();
  /// One piece of work; false where nothing could be done.
  bool step();

 private:
  /// f(transport) of the one that works on `o`.
  template <class F> void with_transport(const CollectiveCall& o, F&& f) {
    if (shared_) f(*shared_);
    else if (levels_.takes(o)) f(levels_);
    else if (native_ && NativeTransport::takes(o)) f(*native_);
    else f(messages_);
  }
  void begin();
  void begin(const CollectiveCall& o);
  bool checked(const CollectiveCall& o);

  const CommOptions& options_;
  int ranks_;
  Segment segment_;
  std::optional<SharedTransport> shared_;
  std::optional<NativeTransport> native_;
  LevelTransport levels_;
  SelfEngine alone_;  // of one rank
  MessageTransport messages_;
  SignatureCheck check_;
  CallHistory history_;
  CallRing<CollectiveCall> calls_;
  bool checking_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "call_queue.ipp"
#endif
