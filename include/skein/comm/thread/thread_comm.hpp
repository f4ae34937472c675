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
  /// Ranks are threads of one process: they share its cores.
  static constexpr bool one_process() { return true; }
  using engine_type = comm::ThreadEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  ThreadComm(std::shared_ptr<comm::Team> team, int rank)
      : engine_(std::make_unique<engine_type>(std::move(team), rank)), uncaught_(std::uncaught_exceptions()) {}
  ThreadComm(ThreadComm&&) = default;
  ThreadComm& operator=(ThreadComm&& o) noexcept {
    std::swap(engine_, o.engine_);
    std::swap(uncaught_, o.uncaught_);
    return *this;
  }
  ~ThreadComm() {
    if (engine_ && std::uncaught_exceptions() <= uncaught_) engine_->retire();
  }

  int rank() const { return engine_->rank(); }
  int size() const { return engine_->team().size; }
  /// Ranks that share this process's cores.
  int node_size() const { return engine_->team().node_size; }

  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  ThreadComm split(int color, int key = 0) {
    if (color < 0) throw ArgumentError("split: a colour is 0 or more; it is " + std::to_string(color));
    struct SplitKey {
      int color, key;
    };
    const std::vector<SplitKey> keys = all_gather(SplitKey{color, key});
    int leader = -1, place = 0, count = 0;
    for (int r = 0; r < size(); ++r) {
      const SplitKey& w = keys[static_cast<std::size_t>(r)];
      if (w.color != color) continue;
      if (leader < 0) leader = r;
      ++count;
      place += w.key < key || (w.key == key && r < rank());
    }
    comm::Team& parent = engine_->team();
    std::shared_ptr<comm::Team> team;
    if (leader == rank()) team = std::make_shared<comm::Team>(count, parent.options, parent.node_size, parent.failure);
    // The leader's pointer is read between the two collectives: it stays where it is that long.
    const auto teams = all_gather(reinterpret_cast<std::uintptr_t>(&team));
    const std::shared_ptr<comm::Team> chosen =
        *reinterpret_cast<const std::shared_ptr<comm::Team>*>(teams[static_cast<std::size_t>(leader)]);
    barrier();
    return ThreadComm(chosen, place);
  }

  engine_type& engine() { return *engine_; }

 private:
  std::unique_ptr<engine_type> engine_;
  int uncaught_ = 0;
};

}  // namespace skein::inline SKEIN_ABI
