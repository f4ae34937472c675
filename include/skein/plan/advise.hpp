// SPDX-License-Identifier: Apache-2.0
// Advice for a job before it runs: does it pay to train on R ranks, how many are best, in what buckets, how often, and as which
// pipeline where the network does not fit on one rank. From a measured time to compute, a network's alpha and beta (measured, or
// what a vendor says), and the model's program; every figure is a prediction of the model in step_cost.hpp, and text() says so.
//
// The criterion is that of the synchronous-SGD literature: an epoch of N samples takes N / B * T_comp alone, and
// N / (R B) * (T_comp + T_sync) on R ranks with B samples each.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "schedule_check.hpp"
#include "step_cost.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// What one asks about.
struct Job {
  std::span<const LayerNode> operations{};  ///< Model::program.ops()
  long scalars = 0;                         ///< of the gradients: Model::sizes.stored
  double scalar_bytes = 4;
  double step_seconds = 0;  ///< T_comp: measured, of one rank with `batch` samples
  long samples = 0;         ///< N: of an epoch
  long batch = 0;           ///< B: of a rank
  Network network{};
  int most_ranks = 64;
  bool overlap = true;  ///< gradients travel while backward goes on
  int micros = 8;       ///< micro-batches, were it a pipeline
};

/// A number of ranks and what it brings.
struct RankForecast {
  int ranks = 1;
  double sync = 0, exposed = 0, step = 0, epoch = 0;
  double speedup = 1, efficiency = 1;
  bool pays = false;  ///< N / (R B) (T_comp + T_sync) < N / B T_comp
};

/// How many ranks pay for a job on a machine, and why.
struct Advice {
  Job job{};
  std::vector<RankForecast> table{};  ///< 1, 2, 3, 4, 6, 8, 12, ... ranks
  RankForecast best{}, thrifty{};     ///< the shortest epoch; the most ranks at an efficiency of 0.8 and more
  long bucket_bytes = 0;              ///< at the best number of ranks
  int buckets = 0;
  AllReduceChoice algorithm{};  ///< of all gradients at once
  int period = 1;               ///< steps between exchanges that would hold them below a tenth of the time
  std::string schedule{};       ///< of a pipeline over up to four ranks
  int stages = 1;
  double bubble = 0, gpipe_bubble = 0;
  int live = 0, gpipe_live = 0;

  /// Sentences, one a line.
  std::string text() const;
};

namespace detail {
inline std::string said(const char* format, ...) __attribute__((format(printf, 1, 2)));
inline std::string said(const char* format, ...) {
  char line[600];
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  __builtin_va_end(arguments);
  return line;
}
inline std::string seconds_in_words(double s) {
  if (s >= 1 || s <= 0) return said("%.3g s", s);
  return s >= 1e-3 ? said("%.3g ms", 1e3 * s) : said("%.3g us", 1e6 * s);
}
inline std::string bytes_in_words(double b) {
  if (b >= 1 << 20) return said("%.3g MiB", b / (1 << 20));
  return b >= 1024 ? said("%.3g KiB", b / 1024) : said("%.0f bytes", b);
}
inline StepCost cost_of(const Job& j, int ranks, long bucket_bytes) {
  return step_cost({j.operations, j.scalars, j.scalar_bytes, compute_times(j.step_seconds), bucket_bytes, j.overlap}, j.network,
                   ranks);
}
/// The bucket size of the shortest step: powers of two, and all at once; the larger of two that cost the same.
inline long best_bucket(const Job& j, int ranks) {
  const long all = std::max(1L, static_cast<long>(static_cast<double>(j.scalars) * j.scalar_bytes));
  long best = all;
  double least = cost_of(j, ranks, all).seconds();
  for (long b = 1L << 28; b >= 1L << 12; b /= 2) {
    if (b >= all) continue;
    const double s = cost_of(j, ranks, b).seconds();
    if (s < least * (1 - 1e-6)) least = s, best = b;
  }
  return best;
}
inline RankForecast forecast(const Job& j, int ranks) {
  const StepCost c = cost_of(j, ranks, best_bucket(j, ranks));
  const double steps = static_cast<double>(j.samples) / (static_cast<double>(ranks) * static_cast<double>(j.batch));
  const double alone = static_cast<double>(j.samples) / static_cast<double>(j.batch) * j.step_seconds;
  RankForecast f{ranks, c.sync, c.exposed, c.seconds(), steps * c.seconds(), 1, 1, false};
  f.speedup = alone / f.epoch;
  f.efficiency = f.speedup / ranks;
  f.pays = ranks > 1 && f.epoch < alone;
  return f;
}

/// 1, 2, 3, 4, 6, 8, 12, ... ranks. More than batches in an epoch would have nothing to do.
inline std::vector<int> rank_counts(const Job& job) {
  const long most = std::min<long>(job.most_ranks, std::max(1L, job.samples / job.batch));
  std::vector<int> counts;
  for (long n = 1; n <= most; n *= 2) {
    counts.push_back(static_cast<int>(n));
    if (n > 1 && n + n / 2 <= most) counts.push_back(static_cast<int>(n + n / 2));
  }
  if (counts.back() != most) counts.push_back(static_cast<int>(most));
  std::sort(counts.begin(), counts.end());
  return counts;
}

/// A pipeline of at most four stages: the shortest table, and of those the one that keeps least.
inline void choose_pipeline(Advice& a) {
  int layers = 0;
  for (const LayerNode& o : a.job.operations) layers += o.parameters > 0;
  a.stages = static_cast<int>(std::min<long>({4, std::max(1, layers), std::max(2, a.job.most_ranks)}));
  if (a.stages < 2) return;
  const int micros = a.job.micros;
  const ScheduleReport gpipe_report = check(gpipe(a.stages, micros));
  a.gpipe_bubble = gpipe_report.bubble;
  a.gpipe_live = gpipe_report.live_activations;
  double shortest = HUGE_VAL;
  for (const Schedule& s : {one_f_one_b(a.stages, micros), gpipe(a.stages, micros), zero_bubble(a.stages, micros)}) {
    const ScheduleReport r = check(s);
    if (r.length > shortest * (1 + 1e-9) || (r.length > shortest * (1 - 1e-9) && r.live_activations >= a.live)) continue;
    shortest = r.length;
    a.schedule = std::string(s.kind);
    a.bubble = r.bubble;
    a.live = r.live_activations;
  }
}
}  // namespace detail

/// Throws ArgumentError where the job says too little.
inline Advice advise(const Job& job) {
  if (!(job.step_seconds > 0))
    throw ArgumentError(text("advise: .step_seconds is the measured time of a step on one rank; it is {}", job.step_seconds));
  if (job.batch < 1 || job.samples < 1)
    throw ArgumentError("advise: .batch (of a rank) and .samples (of an epoch) are 1 or more");
  if (job.scalars < 1 || job.operations.empty())
    throw ArgumentError("advise: .operations are Model::program.ops(), .scalars is Model::sizes.stored");
  if (job.most_ranks < 1 || job.micros < 1) throw ArgumentError("advise: .most_ranks and .micros are 1 or more");
  Advice a;
  a.job = job;
  for (const int n : detail::rank_counts(job)) a.table.push_back(detail::forecast(job, n));
  a.best = a.thrifty = a.table[0];
  for (const RankForecast& f : a.table) {
    if (f.epoch < a.best.epoch) a.best = f;
    if (f.efficiency >= 0.8) a.thrifty = f;
  }
  a.bucket_bytes = detail::best_bucket(job, a.best.ranks);
  a.buckets = detail::cost_of(job, a.best.ranks, a.bucket_bytes).buckets;
  a.algorithm = cheapest_all_reduce(job.network, a.best.ranks, static_cast<double>(job.scalars) * job.scalar_bytes);
  a.period = std::max(1, static_cast<int>(std::ceil(a.best.exposed / (0.1 / 0.9 * job.step_seconds) - 1e-9)));
  detail::choose_pipeline(a);
  return a;
}

namespace detail {
/// How many ranks, in which buckets, by which all-reduce, how often.
inline std::string ranks_in_words(const Advice& a) {
  std::string t;
  if (a.best.ranks == 1)
    t += text("No number of ranks up to {} is faster than one: use larger batches, or a faster network.\n", a.table.back().ranks);
  else {
    t += text("The shortest epoch is that of {} ranks: {}", a.best.ranks, seconds_in_words(a.best.epoch)) +
         said(", %.3g times as fast as one, at an efficiency of %.2f.\n", a.best.speedup, a.best.efficiency);
    if (a.thrifty.ranks != a.best.ranks)
      t += text("At an efficiency of 0.8 and more it is {} {}: {} an epoch.\n", a.thrifty.ranks,
                a.thrifty.ranks == 1 ? "rank" : "ranks", seconds_in_words(a.thrifty.epoch));
    t += said("On %d ranks buckets of ", a.best.ranks) + bytes_in_words(static_cast<double>(a.bucket_bytes)) +
         said(" (%d of them) and the %s all-reduce are best: {.bucket_bytes = %ld}.\n", a.buckets,
              std::string(name_of(a.algorithm.algorithm)).c_str(), a.bucket_bytes);
    if (a.period > 1)
      t += said(
          "Exchanging every %d steps would hold the waiting below a tenth of the time, but replicas drift apart in between: "
          "compare SyncEvery<%d> with ModelAverage<%d>.\n",
          a.period, a.period, a.period);
    else t += "Exchange in every step: the waiting is below a tenth of the time.\n";
  }
  return t;
}
/// A line a number of ranks.
inline std::string table_in_words(const Advice& a) {
  std::string t;
  t += "  ranks   T_sync a step     waited for   epoch          speed-up  efficiency  pays\n";
  for (const RankForecast& f : a.table)
    t += said("  %5d   %-15s   %-10s   %-12s   %8.2f  %10.2f  %s\n", f.ranks, seconds_in_words(f.sync).c_str(),
              seconds_in_words(f.exposed).c_str(), seconds_in_words(f.epoch).c_str(), f.speedup, f.efficiency,
              f.ranks == 1 ? ""
              : f.pays     ? "yes"
                           : "no");
  return t;
}
}  // namespace detail

inline std::string Advice::text() const {
  using namespace detail;
  const double n = static_cast<double>(job.samples), b = static_cast<double>(job.batch),
               bytes = static_cast<double>(job.scalars) * job.scalar_bytes;
  const RankForecast* two = table.size() > 1 ? &table[1] : nullptr;
  std::string t = "What follows is predicted from a measured step and a model of the network (simulated), not measured.\n";
  t += skein::text("A rank computes {} a step of {} samples; the gradients are {}.\n", seconds_in_words(job.step_seconds),
                   job.batch, bytes_in_words(bytes));
  t += "Alone an epoch takes N/B T_comp = " + seconds_in_words(n / b * job.step_seconds) + ".\n";
  if (two)
    t += said("On %d ranks it takes N/(R B) (T_comp + T_sync) = ", two->ranks) + seconds_in_words(two->epoch) +
         ": the gradients travel for " + seconds_in_words(two->sync) + " a step, of which " + seconds_in_words(two->exposed) +
         (two->pays ? " are waited for. It pays, since T_sync / T_comp = "
                    : " are waited for. It does not pay: T_sync / T_comp = ") +
         said("%.3g is %s R - 1 = %d.\n", two->exposed / job.step_seconds, two->pays ? "below" : "not below", two->ranks - 1);
  t += ranks_in_words(*this);
  if (stages > 1)
    t += said(
        "Should the network not fit on one rank: of the pipelines over %d ranks with %d micro-batches, %s is shortest, idle for "
        "%.0f %% of the time (GPipe: %.0f %%), and keeps %d micro-batches at a time (GPipe: %d).\n",
        stages, job.micros, schedule.c_str(), 100 * bubble, 100 * gpipe_bubble, live, gpipe_live);
  return t + table_in_words(*this);
}

}  // namespace skein::inline SKEIN_ABI::plan
