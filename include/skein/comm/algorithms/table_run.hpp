// SPDX-License-Identifier: Apache-2.0
// The interpreter of the tables in plan/collective_steps.hpp: executes one rank's steps by isend and irecv, over any communicator
// of the host that has them. Knows no algorithm. Result: the same bits on all ranks and in every run, in the table's order of
// additions, which is not the order of the ranks that comm.all_reduce keeps.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../plan/collective_steps.hpp"
#include "../concepts.hpp"
#include "../fold.hpp"
#include "../tags.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What has left a rank.
struct Traffic {
  long messages = 0, bytes = 0;
  friend constexpr bool operator==(const Traffic&, const Traffic&) = default;
};

/// The tag of a table's messages where the caller gives none: a message of the user's with that of messages, 0, is not taken for
/// them.
inline constexpr int table_tag = tags::all_reduce_table;

/// For tables that only move values.
struct NoReduction {};

namespace detail {
template <class C, class T, class Op> inline constexpr bool runs_tables = false;
template <class C, class T, class Op> consteval void assert_runs_tables() {
  if constexpr (!Sends<C, T>)
    static_assert(runs_tables<C, T, Op>,
                  "an all-reduce by a table sends messages: the communicator needs send, recv, isend and irecv with tags");
  else if constexpr (!std::same_as<typename C::device, Cpu>)
    static_assert(runs_tables<C, T, Op>,
                  "an all-reduce by a table adds on the host: for memory of a GPU take the communicator's own all_reduce");
  else if constexpr (!std::same_as<Op, NoReduction> && !Reduces<C, T, Op>)
    static_assert(runs_tables<C, T, Op>,
                  "this communicator cannot reduce this type with this operation: take sk::Sum, Mean, Max or Min of a scalar, or "
                  "a small function object T(T, T) that commutes");
}
}  // namespace detail

/// A table at work on one rank: started when it is made, moved on by poll(), ended by wait(). Buffer and communicator stay the
/// caller's and must outlive it. `staging` keeps the largest message that is added; it grows here and nowhere else, so that a
/// second run allocates nothing. A function object of the user's must commute, but for RecursiveDoubling, which keeps the order
/// of the ranks. Throws ArgumentError where table and call do not fit, CommError as the communicator does.
template <class Comm, class T, plan::CollectiveTable Table, class Op = Sum> class TableRun {
 public:
  TableRun(Comm& comm, std::span<T> data, const Table& table, Op op, std::vector<T>& staging, int tag = table_tag)
      : comm_(&comm), data_(data), table_(table), op_(op), staging_(&staging), tag_(tag) {
    detail::assert_runs_tables<Comm, T, Op>();
    if (table.ranks != comm.size() || table.count != static_cast<long>(data.size()))
      throw ArgumentError(text("{}: the table is of {} ranks and {} values; there are {} ranks, and the span holds {}",
                               Table::name, table.ranks, table.count, comm.size(), data.size()));
    std::size_t most = 0;
    for (int s = 0; s < table_.steps(); ++s)
      if (const plan::CollectiveStep step = table_.at(comm.rank(), s);
          step.adds && step.from >= 0 && size_of(step.receive) > most)
        most = size_of(step.receive);
    if (staging.size() < most) staging.resize(most);
    begin_step();
  }
  TableRun(TableRun&&) = default;

  /// Makes progress without waiting; true once the result is there.
  bool poll() {
    while (step_ < table_.steps()) {
      const bool came = received_.poll(), left = sent_.poll();
      if (!came || !left) return false;
      end_step();
    }
    return true;
  }
  /// Blocks until the result is there.
  void wait() {
    while (step_ < table_.steps()) {
      received_.wait();
      sent_.wait();
      end_step();
    }
  }
  /// What has left this rank so far.
  Traffic traffic() const { return traffic_; }

 private:
  static std::size_t size_of(plan::Range r) { return static_cast<std::size_t>(r.end - r.begin); }
  std::span<T> part(plan::Range r) const { return data_.subspan(static_cast<std::size_t>(r.begin), size_of(r)); }

  void begin_step() {
    while (step_ < table_.steps()) {
      now_ = table_.at(comm_->rank(), step_);
      // (void): nvcc takes a request that is assigned for one that is dropped.
      if (now_.from >= 0)
        (void)(received_ = comm_->irecv(now_.adds ? std::span<T>(*staging_).first(size_of(now_.receive)) : part(now_.receive),
                                        now_.from, tag_));
      if (now_.to >= 0) {
        (void)(sent_ = comm_->isend(std::span<const T>(part(now_.send)), now_.to, tag_));
        ++traffic_.messages;
        traffic_.bytes += static_cast<long>(size_of(now_.send) * sizeof(T));
      }
      if (now_.from >= 0 || now_.to >= 0) return;
      ++step_;  // this rank has nothing to do
    }
    finish();
  }
  void end_step() {
    if (now_.from >= 0 && now_.adds) add();
    ++step_;
    begin_step();
  }
  /// The lower rank's values come first, so that both partners of an exchange compute the same, and in the order of the ranks.
  void add() {
    if constexpr (!std::same_as<Op, NoReduction>) {
      using Folded = std::conditional_t<std::same_as<Op, Mean>, Sum, Op>;
      const Folded functor = [&] {
        if constexpr (std::same_as<Op, Mean>) return Sum{};
        else return op_;
      }();
      const std::span<T> own = part(now_.receive);
      const bool first = comm_->rank() < now_.from;
      const void* from[] = {first ? own.data() : staging_->data(), first ? staging_->data() : own.data()};
      void* to[] = {own.data()};
      fold<T, Folded>(&functor, to, 1, from, 2, own.size());
    }
  }
  void finish() {
    if constexpr (std::same_as<Op, Mean>)
      for (T& x : data_) x = detail::finish<T, Mean>(x, table_.ranks);
  }

  using Sent = decltype(std::declval<Comm&>().isend(std::declval<std::span<const T>>(), 0, 0));
  using Received = decltype(std::declval<Comm&>().irecv(std::declval<std::span<T>>(), 0, 0));
  Comm* comm_;
  std::span<T> data_;
  Table table_;
  [[no_unique_address]] Op op_;
  std::vector<T>* staging_;
  int tag_, step_ = 0;
  plan::CollectiveStep now_{};
  Sent sent_{};
  Received received_{};
  Traffic traffic_{};
};

/// Executes a table on this rank, blocking, and says what has left it.
template <class Comm, class T, plan::CollectiveTable Table, class Op = Sum>
Traffic run_table(Comm& comm, std::span<T> data, const Table& table, Op op, std::vector<T>& staging, int tag = table_tag) {
  TableRun<Comm, T, Table, Op> run(comm, data, table, op, staging, tag);
  run.wait();
  return run.traffic();
}

}  // namespace skein::inline SKEIN_ABI::comm
