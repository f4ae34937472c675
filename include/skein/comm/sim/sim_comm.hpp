// SPDX-License-Identifier: Apache-2.0
// A communicator whose network is a clock. Ranks run the real code of every policy, with real gradients, one at a time in this
// process; what is made up is the time alone: of messages by alpha and beta of the level between two ranks, of collectives by the
// play of their tables, of computing by compute(seconds), by a thread's processor time, or by parallel::Simulated around a
// policy.
#pragma once
#include <chrono>
#include <utility>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "../thread/run_ranks.hpp"
#include "world.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// One rank's side of the simulated world.
class SimEngine {
 public:
  SimEngine(std::shared_ptr<SimWorld> world, std::shared_ptr<SimGroup> group, int place);

  void run(const CollectiveCall& o);
  Ticket start(const CollectiveCall& o) { return world_->start(rank_, *group_, place_, calls_++, o); }
  Ticket start_send(const void* data, std::size_t bytes, int to, int tag);
  Ticket start_recv(void* data, std::size_t bytes, int from, int tag);
  bool test(Ticket& t) { return world_->test(rank_, *group_, place_, t); }
  void wait(Ticket& t) { world_->wait(rank_, *group_, place_, t); }
  /// A simulated wait ends when the message comes, or with an error at once where all ranks wait; what is shorter than a
  /// millisecond is a look.
  bool wait_some(Ticket& t, std::chrono::nanoseconds limit);
  void progress() { world_->progress(rank_); }
  /// Requests that an exception leaves behind: the simulation ends with it.
  void abandon();

  SimWorld& world() { return *world_; }
  const SimWorld& world() const { return *world_; }
  const SimGroup& group() const { return *group_; }
  int place() const { return place_; }
  int rank() const { return rank_; }
  std::shared_ptr<SimGroup> part(std::uint64_t split, int color, const std::vector<int>& members);
  std::shared_ptr<SimWorld> shared() const { return world_; }
  std::uint64_t next_split() { return splits_++; }

 private:
  std::shared_ptr<SimWorld> world_;
  std::shared_ptr<SimGroup> group_;
  int place_, rank_;
  std::uint64_t calls_ = 0, splits_ = 0;
};
}  // namespace comm

/// A rank of a simulated world, made by simulate(). Collectives give the bits that ThreadComm's give (values meet in the order of
/// the ranks); their time and messages are those of the table. What is started moves on its own while the rank computes; a send
/// is complete when it has left, a rank sends one message at a time and receives one at a time, both at once.
class SimComm : public comm::Messages<SimComm, Cpu> {
 public:
  static constexpr std::string_view name = "SimComm";
  static constexpr comm::Capabilities capabilities{comm::Capability::nodes, comm::Capability::processes, comm::Capability::clocks,
                                                   comm::Capability::computes, comm::Capability::splits};
  using engine_type = comm::SimEngine;
  template <class T, class Op> static constexpr bool reduces = Reduction<Op, T>;

  SimComm(std::shared_ptr<comm::SimWorld> world, std::shared_ptr<comm::SimGroup> group, int place);

  int rank() const { return engine_->place(); }
  int size() const { return static_cast<int>(engine_->group().members.size()); }
  /// Ranks of this communicator that share this rank's simulated node.
  int node_size() const;

  /// Ranks are threads of one process.
  bool one_process() const { return true; }

  /// Simulated seconds since the start, and those of them in which this rank has waited.
  double now() { return engine_->world().now(engine_->rank()); }
  double waited() { return so_far().waited; }
  /// This rank's clock goes on by so much, times what the options say of slow ranks and jitter.
  void compute(double seconds) { engine_->world().compute(engine_->rank(), seconds); }
  /// What this rank has done so far.
  SimRank so_far() const { return engine_->world().at(engine_->rank()); }

  /// A communicator of the ranks with this colour (0 or more), ordered by key, then by rank. Collective; blocking.
  SimComm split(int color, int key = 0);

  engine_type& engine() { return *engine_; }

 private:
  std::unique_ptr<engine_type> engine_;
};

/// Runs function(SimComm&) on n simulated ranks and says how long that took by their clocks. One rank runs at a time, in the
/// order of the clocks: the result is the same in every run. Ranks that wait for each other in a circle are an error at once.
/// Exceptions: as spawn has them.
template <class Function> SimReport simulate(int n, const SimOptions& options, Function&& function) {
  if (n < 1) throw ArgumentError(text("simulate: there must be at least one rank; asked for {}", n));
  options.check();
  const auto failure = std::make_shared<comm::Failure>();
  const auto world = std::make_shared<comm::SimWorld>(n, options, failure);
  comm::run_ranks(
      "simulate", n, *failure, [&](int rank) { return SimComm(world, world->whole(), rank); },
      [&](SimComm& comm) {
        world->begin(comm.rank());
        function(comm);
      },
      [&](int rank) { world->end(rank); });
  return world->report();
}

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "sim_comm.ipp"
#endif
