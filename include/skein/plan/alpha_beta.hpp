// SPDX-License-Identifier: Apache-2.0
// What an all-reduce costs where a message of b bytes takes alpha + beta b seconds, with one such pair inside a node and one
// between nodes: closed forms, a play of the table itself (their check, and the answer where they are bounds only), and the
// cheapest algorithm for a size. The model: Hockney, Parallel Computing 1994. A rank sends and receives one message at a time,
// both at once (full duplex); messages do not share links. Where they do (many ranks behind one cable), the far beta must be that
// of a share.
#pragma once
#include <algorithm>
#include <vector>

#include "collective_steps.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// A level of a network: seconds a message, and seconds a byte.
struct Level {
  double alpha = 0, beta = 0;
  constexpr double seconds(double bytes) const { return bytes > 0 ? alpha + beta * bytes : 0; }
};

/// Ranks in nodes of `node` (0: all in one), in order. `gamma`: seconds to reduce a byte that has come.
struct Network {
  Level near{}, far{};
  int node = 0;
  double gamma = 0;

  constexpr bool together(int a, int b) const { return node <= 0 || a / node == b / node; }
  constexpr const Level& between(int a, int b) const { return together(a, b) ? near : far; }
};

enum class AllReduceAlgorithm { ring, recursive_doubling, torus, hierarchical };

/// The algorithm's name, as tables print it.
constexpr std::string_view name_of(AllReduceAlgorithm a) {
  constexpr std::string_view names[] = {RingAllReduce::name, RecursiveDoubling::name, TorusAllReduce::name,
                                        HierarchicalAllReduce::name};
  return names[static_cast<int>(a)];
}

/// Plays a table: `ready` are the times at which the ranks come, and become those at which they leave. A message begins when both
/// its ranks are there and takes seconds(from, to, values, step); what is added takes sum(values) more; a step of a rank ends
/// with the later of its two messages. Work: ranks * steps, without a thread: 4,096 ranks are a vector of 4,096 times.
template <CollectiveTable T, class Seconds, class Sum>
constexpr void play_from(const T& table, std::vector<double>& ready, Seconds&& seconds, Sum&& sum) {
  std::vector<double> next = ready;
  const auto at = [](int r) { return static_cast<std::size_t>(r); };
  for (int s = 0; s < table.steps(); ++s) {
    for (int r = 0; r < table.ranks; ++r) {
      const CollectiveStep step = table.at(r, s);
      double end = ready[at(r)];
      if (step.to >= 0) {
        const double begin = ready[at(r)] > ready[at(step.to)] ? ready[at(r)] : ready[at(step.to)];
        const double sent = begin + seconds(r, step.to, step.send.end - step.send.begin, s);
        if (sent > end) end = sent;
      }
      if (step.from >= 0) {
        const double begin = ready[at(r)] > ready[at(step.from)] ? ready[at(r)] : ready[at(step.from)];
        const long values = step.receive.end - step.receive.begin;
        const double came = begin + seconds(step.from, r, values, s) + (step.adds ? sum(values) : 0.0);
        if (came > end) end = came;
      }
      next[at(r)] = end;
    }
    ready.swap(next);
  }
}

/// Plays a table over a network, where all ranks come at once: returns the seconds until the last rank is done.
template <CollectiveTable T> constexpr double played_seconds(const T& table, const Network& network, double bytes_of_a_value) {
  std::vector<double> ready(static_cast<std::size_t>(table.ranks), 0.0);
  play_from(
      table, ready,
      [&](int from, int to, long values, int) {
        return network.between(from, to).seconds(bytes_of_a_value * static_cast<double>(values));
      },
      [&](long values) { return network.gamma * (bytes_of_a_value * static_cast<double>(values)); });
  return *std::max_element(ready.begin(), ready.end());
}

namespace detail {
/// A ring all-reduce over `places` ranks whose slowest link is of this level.
constexpr double ring_seconds(const Level& level, double gamma, int places, double bytes) {
  return places <= 1 ? 0 : (places - 1) * (2 * level.seconds(bytes / places) + gamma * bytes / places);
}
constexpr bool one_node(const Network& n, int ranks) { return n.node <= 0 || ranks <= n.node; }
}  // namespace detail

/// 2 (N - 1) (alpha + beta B / N) + (N - 1) gamma B / N, of the slowest link. B: bytes on each rank.
constexpr double ring_seconds(const Network& n, int ranks, double bytes) {
  return detail::ring_seconds(detail::one_node(n, ranks) ? n.near : n.far, n.gamma, ranks, bytes);
}

/// log2 N (alpha + beta B + gamma B), near where a round's partners are all of one node; with what is over a power of two one
/// round more, and one without the sum. Exact for powers of two; else every round counts as far where there are several nodes,
/// which is a bound.
constexpr double recursive_doubling_seconds(const Network& n, int ranks, double bytes) {
  const RecursiveDoubling table{ranks, 1};
  double seconds = 0;
  const bool one = detail::one_node(n, ranks);
  for (int j = 0; j < table.rounds(); ++j) {
    const bool near = one || (table.extra() == 0 && n.node % (2 << j) == 0);
    seconds += (near ? n.near : n.far).seconds(bytes) + n.gamma * bytes;
  }
  if (table.extra()) seconds += 2 * (one ? n.near : n.far).seconds(bytes) + n.gamma * bytes;
  return seconds;
}

/// A ring's halves along the rows, a ring of the piece along the columns. Exact where pieces are equal.
constexpr double torus_seconds(const Network& n, int ranks, double bytes, int columns) {
  const bool one = detail::one_node(n, ranks), rows_near = one || n.node % columns == 0;
  return detail::ring_seconds(rows_near ? n.near : n.far, n.gamma, columns, bytes) +
         detail::ring_seconds(one ? n.near : n.far, n.gamma, ranks / columns, bytes / columns);
}

/// 2 (node - 1) (alpha + beta B) inside a node, and a ring between the leaders; the nodes are the network's.
constexpr double hierarchical_seconds(const Network& n, int ranks, double bytes) {
  const HierarchicalAllReduce table{ranks, 1, n.node > 0 ? n.node : ranks};
  return table.inside() * (2 * n.near.seconds(bytes) + n.gamma * bytes) +
         detail::ring_seconds(n.far, n.gamma, table.nodes(), bytes);
}

/// An algorithm with its numbers, and what it is predicted to take.
struct AllReduceChoice {
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::ring;
  int columns = 1, node = 1;  ///< of a torus; of a hierarchy
  double seconds = 0;
};

/// The number of columns that a torus gets on this network: the ranks of a node where they divide the ranks, else nearly the
/// root.
constexpr int torus_columns(const Network& n, int ranks) {
  return n.node > 0 && n.node < ranks && ranks % n.node == 0 ? n.node : square_columns(ranks);
}

/// The cheapest algorithm by the closed forms; the earlier of the enumeration where two cost the same.
constexpr AllReduceChoice cheapest_all_reduce(const Network& n, int ranks, double bytes) {
  const int columns = torus_columns(n, ranks), node = n.node > 0 ? n.node : ranks;
  const AllReduceChoice all[] = {{AllReduceAlgorithm::ring, 1, 1, ring_seconds(n, ranks, bytes)},
                                 {AllReduceAlgorithm::recursive_doubling, 1, 1, recursive_doubling_seconds(n, ranks, bytes)},
                                 {AllReduceAlgorithm::torus, columns, 1, torus_seconds(n, ranks, bytes, columns)},
                                 {AllReduceAlgorithm::hierarchical, 1, node, hierarchical_seconds(n, ranks, bytes)}};
  AllReduceChoice best = all[0];
  for (const AllReduceChoice& c : all)
    if (c.seconds < best.seconds) best = c;
  return best;
}

/// Calls use(table) with the choice's table for `count` values, and returns what it returns.
template <class Use> constexpr decltype(auto) with_table(const AllReduceChoice& choice, int ranks, long count, Use&& use) {
  switch (choice.algorithm) {
    case AllReduceAlgorithm::recursive_doubling:
      return use(RecursiveDoubling{ranks, count});
    case AllReduceAlgorithm::torus:
      return use(TorusAllReduce{ranks, count, choice.columns});
    case AllReduceAlgorithm::hierarchical:
      return use(HierarchicalAllReduce{ranks, count, choice.node});
    case AllReduceAlgorithm::ring:
      break;
  }
  return use(RingAllReduce{ranks, count});
}

}  // namespace skein::inline SKEIN_ABI::plan
