// SPDX-License-Identifier: Apache-2.0
// An all-reduce round a ring (plan::RingAllReduce) in short messages that follow each other: while one is added the next ones
// are under way, and receives wait for them. Short, since a message that MPI sends without asking its receiver first costs one
// switch between processes less than one that it asks for, which is more than the copy that this saves. A state machine: step()
// never waits.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../../plan/collective_steps.hpp"
#include "../work.hpp"
#include "kept_buffers.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// One rank's place in a ring of messages. Its buffers and requests are `kept`'s, which must outlive it; one call at a time.
class MessageRing {
 public:
  MessageRing(MPI_Comm comm, int rank, int ranks, int tag, KeptBuffers& kept);

  /// Begins to reduce `count` values at `data` with o.pair, in messages of about `bytes`. `o` and `data` stay alive until done().
  void begin(const CollectiveCall& o, char* data, std::size_t count, std::size_t bytes);
  /// All ranks' values have come, and what this one sends has left.
  bool done() const { return came_ == messages_ && left_ == messages_; }
  /// Goes on where messages have come or left; false where none has.
  bool step();

 private:
  static constexpr long window = 8;  // messages on their way from each rank: measured

  /// The values of message m, counted through all steps.
  plan::Range sends(long m) const { return part(m, step_of(m).send); }
  plan::Range receives(long m) const { return part(m, step_of(m).receive); }
  plan::CollectiveStep step_of(long m) const {
    return plan::RingAllReduce{ranks_, count_}.at(rank_, static_cast<int>(m / parts_));
  }
  plan::Range part(long m, plan::Range piece) const {
    return plan::piece_of(piece, static_cast<int>(m % parts_), static_cast<int>(parts_));
  }
  char* at(plan::Range r) const { return data_ + o_->bytes(static_cast<std::size_t>(r.begin)); }
  char* staging(long m) const { return kept_.in() + static_cast<std::size_t>(m % window) * most_; }
  int size(plan::Range r) const { return static_cast<int>(o_->bytes(static_cast<std::size_t>(r.end - r.begin))); }
  bool adds(long m) const { return m < messages_ / 2; }
  MPI_Request& received(long m) { return kept_.request(static_cast<std::size_t>(m % window)); }
  MPI_Request& sent(long m) { return kept_.request(static_cast<std::size_t>(window + m)); }
  /// Starts the receives and sends whose turn it is.
  void start();
  void add(long m);
  bool test(MPI_Request& request) const;

  MPI_Comm comm_;
  int rank_, ranks_, tag_;
  KeptBuffers& kept_;
  const CollectiveCall* o_ = nullptr;
  char* data_ = nullptr;
  std::size_t most_ = 0;                                // bytes of the longest message
  long count_ = 0, parts_ = 1, messages_ = 0;           // values; messages of a step; of all steps
  long asked_ = 0, came_ = 0, started_ = 0, left_ = 0;  // receives and sends: started, complete
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "message_ring.ipp"
#endif
