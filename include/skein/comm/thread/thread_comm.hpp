// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: the embedded default, and the test bed of every policy. Made by spawn (thread/spawn.hpp)
// and by split; each rank uses its own ThreadComm, from one thread.
#pragma once
#include <memory>
#include <utility>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "engine.hpp"

namespace skein::inline SKEIN_ABI {

/// A rank among threads. Collectives work directly in the buffers of all ranks: an all-reduce of B bytes reads and writes
/// 2 B a rank and copies nothing. Kind, type and count of every call are compared; a difference is a CommError on every rank.
class ThreadComm : public comm::Messages<ThreadComm, Cpu> {
 public:
  static constexpr std::string_view name = "ThreadComm";
  static constexpr comm::Capabilities capabilities{comm::Capability::nodes, comm::Capability::processes,
                                                   comm::Capability::deadlines, comm::Capability::failures,
                                                   comm::Capability::splits};
  using engine_type = comm::ThreadEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  ThreadComm(std::shared_ptr<comm::Team> team, int rank);
  ThreadComm(ThreadComm&&) = default;
  ThreadComm& operator=(ThreadComm&& o) noexcept;
  ~ThreadComm();

  int rank() const { return engine_->rank(); }
  int size() const { return engine_->team().size; }
  /// Ranks that share this process's cores.
  int node_size() const { return engine_->team().node_size; }
  /// Ranks are threads of one process.
  bool one_process() const { return true; }
  /// Seconds until a rank that does not arrive is named.
  double deadline() const { return engine_->team().options.deadline; }
  /// Ends all ranks with a CommError.
  [[noreturn]] void fail(const std::string& message) { engine_->fail(message); }

  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  ThreadComm split(int color, int key = 0);

  engine_type& engine() { return *engine_; }

 private:
  std::unique_ptr<engine_type> engine_;
  int uncaught_ = 0;
  std::uint64_t splits_ = 0;  // the same on all ranks
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "thread_comm.ipp"
#endif
