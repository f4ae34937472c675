// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules as tables: for each rank, in order, which task on which stage and micro-batch. Pure constexpr functions make
// them; an executor reads nothing but the table, and plan/schedule_check.hpp proves one free of deadlock and complete.
//
// GPipe: Huang et al., NeurIPS 2019. 1F1B: Narayanan et al., PipeDream, SOSP 2019; interleaved over several stages a rank:
// Narayanan et al., SC 2021. Zero bubble (backward split into the gradient of the input and of the weights): Qi et al., ICLR 2024
// (ZB-H1).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// What a rank does at a time. `backward` is both gradients at once; the two below are its halves. `update` is an optimizer step.
enum class Task : std::uint8_t { forward, backward, input_gradient, weight_gradient, update };

/// The task in words.
constexpr std::string_view name_of(Task t) {
  constexpr std::string_view names[] = {"forward", "backward", "input gradient", "weight gradient", "update"};
  return names[static_cast<int>(t)];
}

/// One line of a table. An update belongs to a stage, and to the micro-batch after whose gradient it comes.
struct Step {
  Task task = Task::forward;
  int stage = 0, micro = 0;
  friend constexpr bool operator==(const Step&, const Step&) = default;
};

/// Stages 0 .. stages - 1 follow each other; rank r holds the stages r, r + ranks, r + 2 ranks, ... (one each, but where
/// interleaved).
struct Schedule {
  std::string_view kind{};
  int ranks = 1, stages = 1, micros = 1;
  bool synchronous = true;                 ///< one update a step: all micro-batches see the same weights
  std::vector<std::vector<Step>> order{};  ///< of each rank

  constexpr int rank_of(int stage) const { return stage % ranks; }
};

namespace detail {
constexpr Schedule empty_schedule(std::string_view kind, int ranks, int stages, int micros, bool synchronous = true) {
  Schedule s{kind, ranks, stages, micros, synchronous, {}};
  if (ranks > 0) s.order.resize(static_cast<std::size_t>(ranks));
  return s;
}
constexpr void add(Schedule& s, int rank, Task task, int stage, int micro) {
  s.order[static_cast<std::size_t>(rank)].push_back({task, stage, micro});
}
constexpr void add_updates(Schedule& s) {
  for (int stage = 0; stage < s.stages; ++stage) add(s, s.rank_of(stage), Task::update, stage, s.micros - 1);
}
}  // namespace detail

/// One micro-batch after the other through all stages and back, no two ranks at the same time: each rank alternates, and the
/// first stage's next forward waits behind its backward for the whole chain.
constexpr Schedule unpipelined(int ranks, int micros) {
  Schedule s = detail::empty_schedule("unpipelined", ranks, ranks, micros);
  for (int r = 0; r < ranks; ++r)
    for (int m = 0; m < micros; ++m) {
      detail::add(s, r, Task::forward, r, m);
      detail::add(s, r, Task::backward, r, m);
    }
  detail::add_updates(s);
  return s;
}

/// All forwards, then all backwards: every rank keeps the activations of all micro-batches.
constexpr Schedule gpipe(int ranks, int micros) {
  Schedule s = detail::empty_schedule("GPipe", ranks, ranks, micros);
  for (int r = 0; r < ranks; ++r) {
    for (int m = 0; m < micros; ++m) detail::add(s, r, Task::forward, r, m);
    for (int m = 0; m < micros; ++m) detail::add(s, r, Task::backward, r, m);
  }
  detail::add_updates(s);
  return s;
}

/// One forward, one backward: as soon as a micro-batch can go back it does; rank r keeps at most ranks - r of them.
constexpr Schedule one_f_one_b(int ranks, int micros) {
  Schedule s = detail::empty_schedule("1F1B", ranks, ranks, micros);
  for (int r = 0; r < ranks; ++r) {
    const int warm = micros < ranks - 1 - r ? micros : ranks - 1 - r;
    for (int m = 0; m < warm; ++m) detail::add(s, r, Task::forward, r, m);
    for (int m = warm; m < micros; ++m) {
      detail::add(s, r, Task::forward, r, m);
      detail::add(s, r, Task::backward, r, m - warm);
    }
    for (int m = micros - warm; m < micros; ++m) detail::add(s, r, Task::backward, r, m);
  }
  detail::add_updates(s);
  return s;
}

/// 1F1B over `chunks` stages a rank: the bubble is `chunks` times shorter, for as many times the messages. Micro-batches need not
/// be a multiple of the ranks: the table is that of the next multiple, without the entries of micro-batches that are not there. A
/// number below 1 gives a table without entries, which check() refuses.
constexpr Schedule interleaved(int ranks, int chunks, int micros) {
  Schedule s = detail::empty_schedule("interleaved 1F1B", ranks, ranks * chunks, micros);
  if (ranks < 1 || chunks < 1 || micros < 1) return s;
  const int rounds = (micros + ranks - 1) / ranks, total = rounds * ranks * chunks;
  for (int r = 0; r < ranks; ++r) {
    const auto run = [&](int k, bool backward) {
      const int inside = k % (ranks * chunks), chunk = backward ? chunks - 1 - inside / ranks : inside / ranks;
      const int micro = k / (ranks * chunks) * ranks + inside % ranks;
      if (micro < micros) detail::add(s, r, backward ? Task::backward : Task::forward, chunk * ranks + r, micro);
    };
    int warm = chunks == 1 ? ranks - 1 - r : (ranks - 1 - r) * 2 + (chunks - 1) * ranks;
    if (warm > total) warm = total;
    for (int k = 0; k < warm; ++k) run(k, false);
    for (int k = warm; k < total; ++k) {
      run(k, false);
      run(k - warm, true);
    }
    for (int k = total - warm; k < total; ++k) run(k, true);
  }
  detail::add_updates(s);
  return s;
}

/// 1F1B whose backward is split: the gradient of the input goes on at once, that of the weights waits and fills what would be a
/// bubble. Rank r lets r of them wait, so that every rank keeps `ranks` micro-batches, as 1F1B's first one does.
constexpr Schedule zero_bubble(int ranks, int micros) {
  Schedule s = detail::empty_schedule("zero bubble", ranks, ranks, micros);
  for (int r = 0; r < ranks; ++r) {
    int forward = 0, weight = 0;
    for (; forward < micros && forward < ranks - r; ++forward) detail::add(s, r, Task::forward, r, forward);
    for (int m = 0; m < micros; ++m) {
      detail::add(s, r, Task::input_gradient, r, m);
      if (m >= r) detail::add(s, r, Task::weight_gradient, r, weight++);
      if (forward < micros) detail::add(s, r, Task::forward, r, forward++);
    }
    while (weight < micros) detail::add(s, r, Task::weight_gradient, r, weight++);
  }
  detail::add_updates(s);
  return s;
}

/// 1F1B without a pause between batches: after each backward the stage steps. A micro-batch's backward uses the weights of its
/// forward, which are stashed: rank r keeps ranks - r versions of them.
constexpr Schedule pipedream(int ranks, int micros) {
  Schedule s = one_f_one_b(ranks, micros);
  s.kind = "PipeDream";
  s.synchronous = false;
  for (std::vector<Step>& order : s.order) {
    std::vector<Step> with;
    for (const Step& step : order) {
      if (step.task == Task::update) continue;
      with.push_back(step);
      if (step.task == Task::backward) with.push_back({Task::update, step.stage, step.micro});
    }
    order = with;
  }
  return s;
}

}  // namespace skein::inline SKEIN_ABI::plan
