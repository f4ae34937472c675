// SPDX-License-Identifier: Apache-2.0
// What a communicator of two levels must do, whatever its levels are: against the sums of all ranks' integers, which no order
// changes, and the serial twin node by node, to the bit. Failures throw.
#pragma once
#include <catch2/catch.hpp>

#include <vector>

#include <skein/comm/hierarchical/hierarchical.hpp>

#include "collectives.hpp"
#include "rank_check.hpp"

namespace hierarchical_cases {
namespace sk = skein;

/// Each node's ranks in their order, then the nodes.
template <class Op> std::vector<float> reduced(int places, int nodes, std::size_t n, Op op) {
  std::vector<float> all;
  for (int node = 0; node < nodes; ++node) {
    std::vector<float> sum = collectives::values<float>(node * places, n);
    for (int p = 1; p < places; ++p) {
      const std::vector<float> next = collectives::values<float>(node * places + p, n);
      for (std::size_t i = 0; i < n; ++i) sum[i] = op(sum[i], next[i]);
    }
    for (std::size_t i = 0; i < n && node > 0; ++i) all[i] = op(all[i], sum[i]);
    if (node == 0) all = sum;
  }
  return all;
}

template <class World> void everything(World& world) {
  const int ranks = world.size(), me = world.rank(), places = world.levels().places, nodes = world.levels().nodes;
  for (const std::size_t n : {0ul, 1ul, 37ul, 5000ul}) {
    std::vector<float> v = collectives::values<float>(me, n);
    world.all_reduce(v, sk::Sum{});
    RANK_CHECK(collectives::same_bits(v, reduced(places, nodes, n, sk::Sum{})));
    v = collectives::values<float>(me, n);
    world.all_reduce(v, sk::Max{});
    RANK_CHECK(collectives::same_bits(v, reduced(places, nodes, n, sk::Max{})));
    std::vector<double> mean(n, me);
    world.all_reduce(mean, sk::Mean{});
    for (const double x : mean) RANK_CHECK(x == Approx((ranks - 1) / 2.0));
    const int node = me / places, sum = places + (node == 0 ? -1 : node == 1 ? 1 : 0);  // the mean of node 0 is under 1
    std::vector<int> whole(n, me % places == 0 ? sum : 0);
    world.all_reduce(whole, sk::Mean{});
    RANK_CHECK(whole == std::vector<int>(n, nodes > 1 ? 1 : 0));
    for (int root = 0; root < ranks; ++root) {
      std::vector<int> said(n, me == root ? 100 + root : -1);
      world.broadcast(said, root);
      RANK_CHECK(said == std::vector<int>(n, 100 + root));
    }
    std::vector<int> all(n * static_cast<std::size_t>(ranks), -1), expected;
    world.all_gather(std::vector<int>(n, me), all);
    for (int r = 0; r < ranks; ++r) expected.insert(expected.end(), n, r);
    RANK_CHECK(all == expected);
  }
  const std::vector<std::string> texts =
      world.all_gather(std::string(static_cast<std::size_t>(me), 'x') + "|");  // pieces of several lengths
  for (int r = 0; r < ranks; ++r)
    RANK_CHECK(texts[static_cast<std::size_t>(r)] == std::string(static_cast<std::size_t>(r), 'x') + "|");
  world.barrier();
  world.assert_same("a number", 7);
  if (ranks > 1) {
    std::string what;
    try {
      world.assert_same("a number", static_cast<std::uint64_t>(me));
    } catch (const sk::CommError& e) { what = e.what(); }
    RANK_CHECK(what.find("a number differs between ranks: rank 0: hash 0; rank 1: hash 1") == 0);
  }
  // More calls at once than a level's ring has room for, of several kinds, polled at other times on each rank.
  std::vector<std::vector<long>> data(100, std::vector<long>(33, me));
  {
    std::vector<decltype(world.start_all_reduce(data[0], sk::Sum{}))> requests;
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (i % 3 == 2) requests.push_back(world.start_broadcast(data[i], static_cast<int>(i) % ranks));
      else requests.push_back(world.start_all_reduce(data[i], sk::Sum{}));
      if (static_cast<int>(i) % (me + 2) == 0) (void)requests[i / 2].poll();
    }
    for (auto& r : requests) r.wait();
  }
  for (std::size_t i = 0; i < data.size(); ++i)
    RANK_CHECK(data[i] == std::vector<long>(33, i % 3 == 2 ? static_cast<long>(i) % ranks : ranks * (ranks - 1) / 2));
}

/// A world cut into nodes of every size that divides it.
template <class World> void split_worlds(World& world) {
  for (int node = 1; node <= world.size(); ++node) {
    if (world.size() % node == 0) {
      sk::Hierarchical levels{world, node};
      RANK_CHECK(levels.rank() == world.rank() && levels.size() == world.size() && levels.levels().places == node);
      everything(levels);
    } else {
      std::string what;
      try {
        sk::Hierarchical levels{world, node};
      } catch (const sk::ArgumentError& e) { what = e.what(); }
      RANK_CHECK(what.find("Hierarchical: all nodes must have as many ranks; nodes of " + std::to_string(node) +
                           " ranks do not divide " + std::to_string(world.size())) != std::string::npos);
    }
  }
}

}  // namespace hierarchical_cases
