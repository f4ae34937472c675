// SPDX-License-Identifier: Apache-2.0
// One sum of a span over the ranks, started: by the communicator's own all-reduce, or by a table of plan/ over its messages. What
// Compress and Algorithm exchange with; knows nothing of gradients.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../comm/algorithms/table_run.hpp"
#include "../../comm/counts.hpp"
#include "../../plan/collective_check.hpp"
#include "all_reduce_exchange.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// What an algorithm of Algorithm<...> does not say itself. It has a name and table(ranks, count), a plan::CollectiveTable.
struct AlgorithmBase {
  /// True: its table depends on the bytes of a value, table(ranks, count, bytes).
  static constexpr bool by_size = false;
  /// Throws ArgumentError for a number of ranks that it does not go with. Before a training's first step.
  void check(int) const {}
  /// Learns what it wants to know of the network. Collective, after check().
  template <class Comm> void prepare(Comm&) {}
  /// The communicator's own all-reduce serves better for so many bytes.
  bool own(int, double) const { return false; }
};

/// It says which table is run for n values on so many ranks.
template <class A> concept AllReduceAlgorithm = std::derived_from<A, AlgorithmBase> && requires(const A& a) {
  { a.table(2, 1L) } -> plan::CollectiveTable;
};

namespace detail {

template <class A> inline constexpr bool by_table = AllReduceAlgorithm<A>;

/// Its table for n values of T.
template <class T, class A> auto table_of(const A& algorithm, int ranks, std::size_t n) {
  if constexpr (A::by_size) return algorithm.table(ranks, static_cast<long>(n), sizeof(T));
  else return algorithm.table(ranks, static_cast<long>(n));
}

template <class A> bool takes_own(const A& algorithm, int ranks, double bytes) {
  if constexpr (by_table<A>) return algorithm.own(ranks, bytes);
  else return true;
}

/// What one rank gives to the communicator for a sum of n values of T.
template <class T, class A> comm::Counts planned_sum(const A& algorithm, int ranks, int rank, std::size_t n) {
  const long bytes = static_cast<long>(n * sizeof(T));
  if (takes_own(algorithm, ranks, static_cast<double>(bytes))) return {.collectives = 1, .payload = bytes};
  if constexpr (by_table<A>) {
    const plan::SentByRank sent = plan::sent_by(table_of<T>(algorithm, ranks, n), rank);
    return {.messages = sent.messages, .bytes = sent.values * static_cast<long>(sizeof(T))};
  }
  return {};
}

/// One after the other through the same object: no allocation from the second on. The span stays the caller's until it is done.
template <class Comm, class T, class A> class RunningSum {
 public:
  void start(Comm& comm, std::span<T> values, const A& algorithm, [[maybe_unused]] int tag, comm::Counts& counts) {
    if (takes_own(algorithm, comm.size(), static_cast<double>(values.size_bytes()))) {
      counts += {.collectives = 1, .payload = static_cast<long>(values.size_bytes())};
      (void)own_.emplace(comm.start_all_reduce(DeviceSpan<T, Cpu>(values.data(), values.size()), Sum{}));
      return;
    }
    if constexpr (by_table<A>) {
      counts_ = &counts;
      table_.emplace(comm, values, table_of<T>(algorithm, comm.size(), values.size()), Sum{}, staging_, tag);
    }
  }
  bool poll() {
    if (own_ && own_->poll()) own_.reset();
    if constexpr (by_table<A>)
      if (table_ && table_->poll()) count();
    return done();
  }
  void wait() {
    if (own_) own_->wait();
    own_.reset();
    if constexpr (by_table<A>)
      if (table_) {
        table_->wait();
        count();
      }
  }
  bool done() const {
    if constexpr (by_table<A>) return !own_ && !table_;
    else return !own_;
  }
  /// Forgets the sum of a step that was broken off.
  void drop() {
    own_.reset();
    if constexpr (by_table<A>) table_.reset();
  }

 private:
  void count() {
    *counts_ += {.messages = table_->traffic().messages, .bytes = table_->traffic().bytes};
    table_.reset();
  }

  struct None {};
  template <bool Table, class Other> struct TableOf { using type = None; };
  template <class Other> struct TableOf<true, Other> {
    using type = std::optional<comm::TableRun<Comm, T, decltype(std::declval<const Other&>().table(2, 1L)), Sum>>;
  };
  std::vector<T> staging_;  // goes last: what is under way arrives in it until its request has gone
  std::optional<decltype(std::declval<Comm&>().start_all_reduce(std::declval<DeviceSpan<T, Cpu>>(), Sum{}))> own_;
  [[no_unique_address]] typename TableOf<by_table<A>, A>::type table_;
  comm::Counts* counts_ = nullptr;
};

}  // namespace detail
}  // namespace skein::inline SKEIN_ABI::parallel
