// SPDX-License-Identifier: Apache-2.0
// All-reduce algorithms as tables: who sends which range to whom in which step. A table is a small value with a pure constexpr
// function of (rank, step), so that 4,096 ranks need no memory; comm/algorithms/table_run.hpp executes one,
// plan/collective_check.hpp proves one, plan/alpha_beta.hpp says what one costs. In a step a rank sends at most one message and
// receives at most one.
//
// Ring: Patarasuk and Yuan, J. Parallel Distrib. Comput. 2009. Recursive doubling: Thakur, Rabenseifner, Gropp, IJHPCA 2005.
// Torus: Mikami et al., arXiv 1811.05233 (2018). N is the number of ranks and n the number of values below.
#pragma once
#include <concepts>
#include <string_view>

#include "program.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

/// What one rank does in one step: both halves may be absent (rank -1). What is sent is read before anything that comes is
/// written.
struct CollectiveStep {
  int to = -1;
  Range send{};
  int from = -1;
  Range receive{};
  bool adds = false;  ///< what comes is reduced into the range; else it replaces it
};

/// ranks, count (values on each rank), steps(), and at(rank, step).
template <class T> concept CollectiveTable = requires(const T& t) {
  { T::name } -> std::convertible_to<std::string_view>;
  { t.ranks } -> std::convertible_to<int>;
  { t.count } -> std::convertible_to<long>;
  { t.steps() } -> std::same_as<int>;
  { t.at(0, 0) } -> std::same_as<CollectiveStep>;
};

/// The k-th of `pieces` nearly equal parts of a range.
constexpr Range piece_of(Range whole, int k, int pieces) {
  const long n = whole.end - whole.begin;
  return {whole.begin + n * k / pieces, whole.begin + n * (k + 1) / pieces};
}

namespace detail {
/// A step without empty messages: both sides know that there is nothing in them.
constexpr CollectiveStep without_empty(CollectiveStep s) {
  if (s.send.begin >= s.send.end) s.to = -1;
  if (s.receive.begin >= s.receive.end) s.from = -1;
  return s;
}
constexpr int wrapped(int k, int n) { return (k % n + n) % n; }
/// Step `step` of a ring over `size` places: piece (place + first - step) goes on to the next place, the one before it comes.
constexpr CollectiveStep ring_step(Range whole, int size, int place, int step, int first, int next, int before, bool adds) {
  const int k = wrapped(place + first - step, size);
  return without_empty({next, piece_of(whole, k, size), before, piece_of(whole, wrapped(k - 1, size), size), adds});
}
/// A whole all-reduce over a ring: size - 1 steps that reduce and scatter, then as many that gather.
constexpr CollectiveStep ring_all_reduce_step(Range whole, int size, int place, int step, int next, int before) {
  const bool adds = step < size - 1;
  return ring_step(whole, size, place, adds ? step : step - (size - 1), adds ? 0 : 1, next, before, adds);
}
constexpr int floor_log2(int n) {
  int log = 0;
  while (n >> (log + 1)) ++log;
  return log;
}
}  // namespace detail

/// Reduce-scatter, then all-gather, over a ring: 2 (N - 1) messages and 2 (N - 1) / N n values leave each rank. The least that
/// can leave it.
struct RingAllReduce {
  static constexpr std::string_view name = "ring";
  int ranks = 1;
  long count = 0;

  constexpr int steps() const { return 2 * (ranks - 1); }
  constexpr CollectiveStep at(int rank, int step) const {
    return detail::ring_all_reduce_step({0, count}, ranks, rank, step, (rank + 1) % ranks, detail::wrapped(rank - 1, ranks));
  }
};

/// The second half alone: rank r begins with piece r of N equal ones and ends with all. N - 1 messages a rank.
struct RingAllGather {
  static constexpr std::string_view name = "ring all-gather";
  int ranks = 1;
  long count = 0;

  constexpr int steps() const { return ranks - 1; }
  constexpr CollectiveStep at(int rank, int step) const {
    return detail::ring_step({0, count}, ranks, rank, step, 0, (rank + 1) % ranks, detail::wrapped(rank - 1, ranks), false);
  }
};

namespace detail {
/// N ranks as 2^k: where N is no power of two, the 2 e first ranks (e: what is over) become e, by a message before and one after.
struct PowerOfTwo {
  int ranks = 1;

  constexpr int rounds() const { return floor_log2(ranks); }
  constexpr int extra() const { return ranks - (1 << rounds()); }
  /// Place among the 2^k; -1: the rank has handed its values on and waits for the result.
  constexpr int place(int rank) const { return rank >= 2 * extra() ? rank - extra() : rank % 2 == 0 ? -1 : rank / 2; }
  constexpr int rank_at(int place) const { return place < extra() ? 2 * place + 1 : place + extra(); }
  /// The message before (it is added) and the one after.
  constexpr CollectiveStep hand_on(int rank, Range all, bool before) const {
    if (rank >= 2 * extra()) return {};
    const bool even = rank % 2 == 0, sends = even == before;
    const int peer = even ? rank + 1 : rank - 1;
    return without_empty({sends ? peer : -1, all, sends ? -1 : peer, all, before});
  }
};
}  // namespace detail

/// Everything, exchanged with the rank at distance 1, 2, 4, ...: log2 N messages of n values. Where N is no power of two, the 2 e
/// first ranks (e: what is over) become e before and 2 e after, for one message more each way. For short messages.
struct RecursiveDoubling {
  static constexpr std::string_view name = "recursive doubling";
  int ranks = 1;
  long count = 0;

  constexpr int rounds() const { return detail::PowerOfTwo{ranks}.rounds(); }
  constexpr int extra() const { return detail::PowerOfTwo{ranks}.extra(); }
  constexpr int steps() const { return rounds() + (extra() ? 2 : 0); }
  constexpr CollectiveStep at(int rank, int step) const {
    const Range all{0, count};
    const detail::PowerOfTwo p{ranks};
    const int round = step - (extra() ? 1 : 0);
    if (round < 0 || round == rounds()) return p.hand_on(rank, all, round < 0);
    if (p.place(rank) < 0) return {};
    const int who = p.rank_at(p.place(rank) ^ (1 << round));
    return detail::without_empty({who, all, who, all, true});
  }
};

/// Rabenseifner's: a reduce-scatter in which the exchanged range halves, with the rank at distance 1, 2, 4, ... (the longest
/// messages go to the next rank, which is often on the same switch), then an all-gather that goes the same way back. 2 log2 N
/// messages and 2 (N - 1) / N n values leave each rank: as few values as a ring, in fewer messages. Where N is no power of two,
/// as RecursiveDoubling, for n values more. For messages of middle length.
struct HalvingDoubling {
  static constexpr std::string_view name = "halving and doubling";
  int ranks = 1;
  long count = 0;

  constexpr int rounds() const { return detail::PowerOfTwo{ranks}.rounds(); }
  constexpr int extra() const { return detail::PowerOfTwo{ranks}.extra(); }
  constexpr int steps() const { return 2 * rounds() + (extra() ? 2 : 0); }
  constexpr CollectiveStep at(int rank, int step) const {
    const detail::PowerOfTwo p{ranks};
    const int round = step - (extra() ? 1 : 0), place = p.place(rank);
    if (round < 0 || round == 2 * rounds()) return p.hand_on(rank, {0, count}, round < 0);
    if (place < 0) return {};
    const bool adds = round < rounds();
    const int halvings = adds ? round + 1 : 2 * rounds() - round, other = place ^ (1 << (halvings - 1));
    const Range own = left_to(place, halvings), theirs = left_to(other, halvings);
    const int who = p.rank_at(other);
    return detail::without_empty({who, adds ? theirs : own, who, adds ? own : theirs, adds});
  }

 private:
  /// What a place has to itself after so many halvings.
  constexpr Range left_to(int place, int halvings) const {
    Range r{0, count};
    for (int i = 1; i <= halvings; ++i) r = piece_of(r, place >> (i - 1) & 1, 2);
    return r;
  }
};

/// Ranks as rows of `columns`: reduce-scatter along the row, a ring all-reduce of the piece along the column, all-gather along
/// the row. 2 (columns - 1) + 2 (rows - 1) messages and 2 (N - 1) / N n values leave each rank. `columns` divides `ranks`; with
/// columns the ranks of a node, only 1 / columns of the values leave the node, over all its ranks at once.
struct TorusAllReduce {
  static constexpr std::string_view name = "torus";
  int ranks = 1;
  long count = 0;
  int columns = 1;

  constexpr int rows() const { return ranks / columns; }
  constexpr int steps() const { return 2 * (columns - 1) + 2 * (rows() - 1); }
  constexpr CollectiveStep at(int rank, int step) const {
    const int x = rank % columns, y = rank / columns, scatter = columns - 1, down = 2 * (rows() - 1);
    const auto at_place = [&](int c, int r) { return detail::wrapped(r, rows()) * columns + detail::wrapped(c, columns); };
    if (step >= scatter && step < scatter + down)
      return detail::ring_all_reduce_step(piece_of({0, count}, (x + 1) % columns, columns), rows(), y, step - scatter,
                                          at_place(x, y + 1), at_place(x, y - 1));
    return detail::ring_all_reduce_step({0, count}, columns, x, step < scatter ? step : step - down, at_place(x + 1, y),
                                        at_place(x - 1, y));
  }
};

/// Ranks in nodes of `node` (the last may have fewer): everything to the node's first rank, a ring between those, and back. A
/// rank beside them sends one message, a leader 2 (nodes - 1) + node - 1. For a network that is slower than the node by far, and
/// few nodes.
struct HierarchicalAllReduce {
  static constexpr std::string_view name = "hierarchical";
  int ranks = 1;
  long count = 0;
  int node = 1;

  constexpr int nodes() const { return ranks / node + (ranks % node != 0); }
  constexpr int inside() const { return (node < ranks ? node : ranks) - 1; }
  constexpr int steps() const { return 2 * inside() + 2 * (nodes() - 1); }
  constexpr CollectiveStep at(int rank, int step) const {
    const Range all{0, count};
    const int place = rank / node, leader = place * node, between = 2 * (nodes() - 1);
    if (step >= inside() && step < inside() + between)
      return rank != leader ? CollectiveStep{}
                            : detail::ring_all_reduce_step(all, nodes(), place, step - inside(), (place + 1) % nodes() * node,
                                                           detail::wrapped(place - 1, nodes()) * node);
    const bool up = step < inside();
    const int member = leader + 1 + (up ? step : step - inside() - between);
    if (member >= ranks || (rank != leader && rank != member)) return {};
    const bool sends = (rank == member) == up;
    return detail::without_empty({sends ? leader + member - rank : -1, all, sends ? -1 : leader + member - rank, all, up});
  }
};

/// The most square number of columns: the largest divisor of `ranks` up to its root. 1 for a prime: then the torus is a ring.
constexpr int square_columns(int ranks) {
  int best = 1;
  for (int c = 1; c <= ranks / c; ++c)
    if (ranks % c == 0) best = c;
  return best;
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
