// SPDX-License-Identifier: Apache-2.0
// Hierarchical<Inner, Outer>: a communicator made of two: one of a node's ranks and one between nodes. An all-reduce is a
// reduce-scatter in the node, all-reduces of the slices between nodes, each by another rank, and an all-gather in the node: only
// 1 / places of the bytes leaves a rank's node (Mikami et al., arXiv 1811.05233). With leaders only place 0 of a node talks to
// other nodes: threads of processes need no MPI of their own.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../concepts.hpp"
#include "../messages.hpp"
#include "engine.hpp"

namespace skein::inline SKEIN_ABI {

/// Ranks are those of node 0, then those of node 1, ...: all nodes have as many. Has barrier, broadcast, all_reduce and
/// all_gather, with the started forms; no messages, and no other collective. Sums add within each node in the order of its ranks,
/// then nodes in their order: the same bits on all ranks and in every run, but other ones than a flat communicator's. An
/// all-reduce of B bytes takes 2 (p - 1) / p B in and out of each rank in its node of p, and 2 (n - 1) / n B / p between n nodes
/// (of leaders: B to a leader from each rank, 2 (n - 1) / n B between leaders).
template <class Inner, class Outer = Inner> class Hierarchical
    : public comm::Agreements<Hierarchical<Inner, Outer>, Cpu>,
      public comm::ForwardsTo<Inner, comm::Capability::orders, comm::Capability::failures, comm::Capability::node_places,
                              comm::Capability::shares> {
  static_assert(std::same_as<typename Inner::device, Cpu> && std::same_as<typename Outer::device, Cpu>,
                "Hierarchical goes with communicators of the host: NCCL knows its levels by itself");

 public:
  static constexpr std::string_view name = "Hierarchical";
  using engine_type = comm::HierarchicalEngine<typename Inner::engine_type, typename Outer::engine_type>;
  template <class T, class Op> static constexpr bool reduces = Inner::template reduces<T, Op>&& Outer::template reduces<T, Op>;

  /// Splits a world into nodes of so many consecutive ranks; 0: what the world says of its nodes. Collective. Throws
  /// ArgumentError on every rank where the nodes would not be equal.
  explicit Hierarchical(Inner& world, int node = 0) requires(std::same_as<Inner, Outer>) {
    const int ranks = world.size();
    if (node == 0)
      if constexpr (comm::can<Inner, comm::Capability::nodes>) {
        node = world.node_size();
        for (const int other : world.all_gather(node))
          if (other != node) refuse(text("its nodes have {} and {} ranks", other, node));
        if constexpr (comm::can<Inner, comm::Capability::node_places>) {
          const std::vector<int> places = world.all_gather(world.node_rank());
          for (int r = 0; r < ranks; ++r)
            if (places[static_cast<std::size_t>(r)] != r % node)
              refuse(text("rank {} is place {} of its node: start the ranks node by node (mpirun --map-by slot)", r,
                          places[static_cast<std::size_t>(r)]));
        }
        if (node > ranks) node = ranks;
      }
    if (node < 1 || ranks % node != 0) refuse(text("nodes of {} ranks do not divide {}", node, ranks));
    const int rank = world.rank();
    up_ = std::make_unique<Inner>(world.split(rank / node));
    down_ = std::make_unique<Inner>(world.split(rank / node));
    between_ = std::make_unique<Outer>(world.split(rank % node));
    set({rank / node, ranks / node, rank % node, node, false}, between_.get());
  }
  /// Makes two levels of the communicator of this node's ranks and, on its rank 0, the one between the nodes' rank 0 (nullptr
  /// on the others; it must outlive this). Collective over both.
  Hierarchical(Inner& node, Outer* leaders) {
    int said[3] = {leaders ? leaders->rank() : 0, leaders ? leaders->size() : 0, 1};
    if (node.rank() == 0 && leaders)
      for (const int places : leaders->all_gather(node.size())) said[2] = said[2] && places == node.size();
    node.broadcast(DeviceSpan<int, Cpu>{said, 3}, 0);
    if (said[1] == 0) refuse("rank 0 of a node needs a communicator between the nodes");
    if (!said[2]) refuse(text("its nodes have other numbers of ranks than this one, which has {}", node.size()));
    up_ = std::make_unique<Inner>(node.split(0));
    down_ = std::make_unique<Inner>(node.split(0));
    set({said[0], said[1], node.rank(), node.size(), true}, node.rank() == 0 ? leaders : nullptr);
  }

  int rank() const { return engine_->levels().rank(); }
  int size() const { return engine_->levels().nodes * engine_->levels().places; }
  /// This rank's place in the levels.
  const comm::Levels& levels() const { return engine_->levels(); }

  template <class... Any> void reduce(Any&&...) = delete;
  template <class... Any> void reduce_scatter(Any&&...) = delete;
  template <class... Any> void start_reduce_scatter(Any&&...) = delete;
  template <class... Any> void reduce_scatter_v(Any&&...) = delete;
  template <class... Any> void start_reduce_scatter_v(Any&&...) = delete;
  template <class... Any> void all_to_all(Any&&...) = delete;

  engine_type& engine() { return *engine_; }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw ArgumentError("Hierarchical: all nodes must have as many ranks; " + why);
  }
  void set(comm::Levels levels, Outer* between) {
    this->forward_to(*up_);
    engine_ = std::make_unique<engine_type>(levels, up_->engine(), between ? &between->engine() : nullptr, down_->engine());
  }

  std::unique_ptr<Inner> up_, down_;
  std::unique_ptr<Outer> between_;
  std::unique_ptr<engine_type> engine_;
};

}  // namespace skein::inline SKEIN_ABI
