// SPDX-License-Identifier: Apache-2.0
// Tables of the collectives beside all-reduce, as a simulated communicator needs them: broadcast, reduce, reduce-scatter,
// exchange and barrier. plan/alpha_beta.hpp plays them on clocks.
#pragma once
#include <vector>

#include "alpha_beta.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Root's values to all, in a binomial tree: in step s the 2^s first have them, and pass them on. log2 N steps, N - 1 messages.
struct BinomialBroadcast {
  static constexpr std::string_view name = "binomial broadcast";
  int ranks = 1;
  long count = 0;
  int root = 0;

  constexpr int steps() const { return ranks > 1 ? detail::floor_log2(ranks - 1) + 1 : 0; }
  constexpr CollectiveStep at(int rank, int step) const {
    const int place = detail::wrapped(rank - root, ranks), reach = 1 << step;
    const auto who = [&](int p) { return (p + root) % ranks; };
    CollectiveStep s{-1, {0, count}, -1, {0, count}, false};
    if (place < reach && place + reach < ranks) s.to = who(place + reach);
    if (place >= reach && place < 2 * reach) s.from = who(place - reach);
    return detail::without_empty(s);
  }
};

/// The tree of BinomialBroadcast backwards, adding: root ends with the reduction.
struct BinomialReduce {
  static constexpr std::string_view name = "binomial reduce";
  int ranks = 1;
  long count = 0;
  int root = 0;

  constexpr int steps() const { return BinomialBroadcast{ranks, count, root}.steps(); }
  constexpr CollectiveStep at(int rank, int step) const {
    const CollectiveStep s = BinomialBroadcast{ranks, count, root}.at(rank, steps() - 1 - step);
    return {s.from, s.receive, s.to, s.send, true};
  }
};

/// The first half of the ring: rank r ends with piece r of N equal ones, reduced. N - 1 messages a rank.
struct RingReduceScatter {
  static constexpr std::string_view name = "ring reduce-scatter";
  int ranks = 1;
  long count = 0;

  constexpr int steps() const { return ranks - 1; }
  constexpr CollectiveStep at(int rank, int step) const {
    return detail::ring_step({0, count}, ranks, rank, step, -1, (rank + 1) % ranks, detail::wrapped(rank - 1, ranks), true);
  }
};

/// In step s to the rank s + 1 behind, from the one s + 1 before. count: values of the whole buffer, N pieces. N - 1 messages a
/// rank.
struct PairwiseExchange {
  static constexpr std::string_view name = "pairwise exchange";
  int ranks = 1;
  long count = 0;

  constexpr int steps() const { return ranks - 1; }
  constexpr CollectiveStep at(int rank, int step) const {
    const int to = (rank + step + 1) % ranks, from = detail::wrapped(rank - step - 1, ranks);
    return detail::without_empty({to, piece_of({0, count}, to, ranks), from, piece_of({0, count}, rank, ranks), false});
  }
};

/// Empty messages to the ranks at distance 1, 2, 4, ...: who has heard from all may go on. Hensgen, Finkel, Manber 1988.
struct DisseminationBarrier {
  static constexpr std::string_view name = "dissemination barrier";
  int ranks = 1;
  long count = 0;

  constexpr int steps() const { return ranks > 1 ? detail::floor_log2(ranks - 1) + 1 : 0; }
  constexpr CollectiveStep at(int rank, int step) const {
    const int reach = 1 << step;
    return {(rank + reach) % ranks, {}, detail::wrapped(rank - reach, ranks), {}, false};
  }
};

}  // namespace skein::inline SKEIN_ABI::plan
