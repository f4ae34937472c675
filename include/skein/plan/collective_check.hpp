// SPDX-License-Identifier: Apache-2.0
// The proof of an all-reduce's table: plays it with the contributions of every rank to every value. Finds messages that nobody
// expects, contributions that are missing or counted twice, and counts messages and values sent. Usable in static_assert.
#pragma once
#include <string_view>
#include <vector>

#include "collective_steps.hpp"

namespace skein::inline SKEIN_ABI::plan {

enum class CollectiveFault { none, no_such_range, unmatched, missing, twice };

/// The fault in a sentence.
constexpr std::string_view sentence_of(CollectiveFault f) {
  switch (f) {
    case CollectiveFault::none:
      return "every rank ends with the contributions of all ranks, each once";
    case CollectiveFault::no_such_range:
      return "a step names a rank or a range that does not exist";
    case CollectiveFault::unmatched:
      return "a message is sent that its receiver does not expect in that step, or awaited that nobody sends";
    case CollectiveFault::missing:
      return "a rank ends without the contribution of another";
    case CollectiveFault::twice:
      return "a rank ends with a contribution counted twice";
  }
  return {};
}

/// What check() found.
struct CollectiveReport {
  CollectiveFault fault = CollectiveFault::none;
  int rank = -1, step = -1;                 ///< the first place that is at fault; step -1: the result
  long messages = 0, values = 0;            ///< sent by all ranks together
  long most_messages = 0, most_values = 0;  ///< sent by the rank that sends most

  constexpr bool sound() const { return fault == CollectiveFault::none; }
};

/// Messages and values that leave one rank: linear in the steps.
struct SentByRank {
  long messages = 0, values = 0;
  friend constexpr bool operator==(const SentByRank&, const SentByRank&) = default;
};
/// What a rank sends in all steps of a table.
template <CollectiveTable T> constexpr SentByRank sent_by(const T& table, int rank) {
  SentByRank sent;
  for (int s = 0; s < table.steps(); ++s)
    if (const CollectiveStep step = table.at(rank, s); step.to >= 0) {
      ++sent.messages;
      sent.values += step.send.end - step.send.begin;
    }
  return sent;
}

namespace detail {
template <class T> constexpr bool in_table(const T& t, int rank, int peer, Range r) {
  return peer < 0 || (peer < t.ranks && peer != rank && r.begin >= 0 && r.begin < r.end && r.end <= t.count);
}
/// How often rank r's value i holds the value of rank q.
class Contributions {
 public:
  constexpr Contributions(int ranks, long count)
      : ranks_(ranks), count_(count),
        times_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks), 0) {}
  constexpr int& of(int rank, long value, int source) {
    return times_[(static_cast<std::size_t>(rank) * static_cast<std::size_t>(count_) + static_cast<std::size_t>(value)) *
                      static_cast<std::size_t>(ranks_) +
                  static_cast<std::size_t>(source)];
  }

 private:
  int ranks_;
  long count_;
  std::vector<int> times_;
};

/// Are a rank's ranges of a step within the table, and does the other rank of each message name the same?
template <CollectiveTable T> constexpr CollectiveFault fault_of_step(const T& table, int rank, int s) {
  const CollectiveStep step = table.at(rank, s);
  if (!in_table(table, rank, step.to, step.send) || !in_table(table, rank, step.from, step.receive))
    return CollectiveFault::no_such_range;
  if (step.to >= 0)
    if (const CollectiveStep other = table.at(step.to, s); other.from != rank || other.receive != step.send)
      return CollectiveFault::unmatched;
  if (step.from >= 0)
    if (const CollectiveStep other = table.at(step.from, s); other.to != rank || other.send != step.receive)
      return CollectiveFault::unmatched;
  return CollectiveFault::none;
}
}  // namespace detail

/// Plays the whole table of an all-reduce: ranks^2 * count numbers.
template <CollectiveTable T> constexpr CollectiveReport check(const T& table) {
  CollectiveReport report;
  const auto fault = [&](CollectiveFault f, int rank, int step) {
    report.fault = f;
    report.rank = rank;
    report.step = step;
    return report;
  };
  detail::Contributions now(table.ranks, table.count);
  for (int r = 0; r < table.ranks; ++r)
    for (long i = 0; i < table.count; ++i) now.of(r, i, r) = 1;
  for (int s = 0; s < table.steps(); ++s) {
    detail::Contributions before = now;
    for (int r = 0; r < table.ranks; ++r) {
      if (const CollectiveFault f = detail::fault_of_step(table, r, s); f != CollectiveFault::none) return fault(f, r, s);
      const CollectiveStep step = table.at(r, s);
      if (step.from < 0) continue;
      for (long i = step.receive.begin; i < step.receive.end; ++i)
        for (int q = 0; q < table.ranks; ++q) now.of(r, i, q) = before.of(step.from, i, q) + (step.adds ? before.of(r, i, q) : 0);
    }
  }
  for (int r = 0; r < table.ranks; ++r) {
    const SentByRank sent = sent_by(table, r);
    report.messages += sent.messages;
    report.values += sent.values;
    if (sent.messages > report.most_messages) report.most_messages = sent.messages;
    if (sent.values > report.most_values) report.most_values = sent.values;
    for (long i = 0; i < table.count; ++i)
      for (int q = 0; q < table.ranks; ++q)
        if (const int times = now.of(r, i, q); times != 1)
          return fault(times == 0 ? CollectiveFault::missing : CollectiveFault::twice, r, -1);
  }
  return report;
}

}  // namespace skein::inline SKEIN_ABI::plan
