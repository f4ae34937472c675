// SPDX-License-Identifier: Apache-2.0
// The bodies of advise.hpp.
#pragma once
#include "advise.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan::detail {

SKEIN_INLINE std::string said(const char* format, ...) {
  char line[600];
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  __builtin_va_end(arguments);
  return line;
}

SKEIN_INLINE std::string seconds_in_words(double s) {
  if (s >= 1 || s <= 0) return said("%.3g s", s);
  return s >= 1e-3 ? said("%.3g ms", 1e3 * s) : said("%.3g us", 1e6 * s);
}

SKEIN_INLINE std::string bytes_in_words(double b) {
  if (b >= 1 << 20) return said("%.3g MiB", b / (1 << 20));
  return b >= 1024 ? said("%.3g KiB", b / 1024) : said("%.0f bytes", b);
}

SKEIN_INLINE StepCost cost_of(const Job& j, int ranks, long bucket_bytes) {
  return step_cost({j.operations, j.scalars, j.scalar_bytes, compute_times(j.step_seconds), bucket_bytes, j.overlap}, j.network,
                   ranks);
}

SKEIN_INLINE long best_bucket(const Job& j, int ranks) {
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

SKEIN_INLINE RankForecast forecast(const Job& j, int ranks) {
  const StepCost c = cost_of(j, ranks, best_bucket(j, ranks));
  const double steps = static_cast<double>(j.samples) / (static_cast<double>(ranks) * static_cast<double>(j.batch));
  const double alone = static_cast<double>(j.samples) / static_cast<double>(j.batch) * j.step_seconds;
  RankForecast f{ranks, c.sync, c.exposed, c.seconds(), steps * c.seconds(), 1, 1, false};
  f.speedup = alone / f.epoch;
  f.efficiency = f.speedup / ranks;
  f.pays = ranks > 1 && f.epoch < alone;
  return f;
}

SKEIN_INLINE std::vector<int> rank_counts(const Job& job) {
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

SKEIN_INLINE void choose_pipeline(Advice& a) {
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

}  // namespace skein::inline SKEIN_ABI::plan::detail

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE Advice advise(const Job& job) {
  if (!(job.step_seconds > 0) || std::isinf(job.step_seconds))
    throw ArgumentError(text("advise: .step_seconds is the measured time of a step on one rank; it is {}", job.step_seconds));
  if (job.batch < 1 || job.samples < 1)
    throw ArgumentError("advise: .batch (of a rank) and .samples (of an epoch) are 1 or more");
  if (job.scalars < 1 || job.operations.empty())
    throw ArgumentError("advise: .operations are Model::program.ops(), .scalars is Model::sizes.stored");
  if (job.most_ranks < 1 || job.micros < 1) throw ArgumentError("advise: .most_ranks and .micros are 1 or more");
  if (!(job.scalar_bytes > 0) || std::isinf(job.scalar_bytes))
    throw ArgumentError(text("advise: .scalar_bytes is {}: a gradient has 4 bytes as a float, 8 as a double", job.scalar_bytes));
  for (const double seconds :
       {job.network.near.alpha, job.network.near.beta, job.network.far.alpha, job.network.far.beta, job.network.gamma})
    if (!(seconds >= 0) || std::isinf(seconds))
      throw ArgumentError(
          text("advise: .network has {} seconds of a message or of a byte: give finite ones, 0 or more", seconds));
  Advice a;
  a.job = job;
  for (const int n : detail::rank_counts(job)) a.table.push_back(detail::forecast(job, n));
  a.best = a.thrifty = a.table[0];
  for (const RankForecast& f : a.table) {
    if (f.epoch < a.best.epoch) a.best = f;
    if (f.efficiency >= 0.8) a.thrifty = f;
  }
  a.bucket_bytes = detail::best_bucket(job, a.best.ranks);
  const StepCost cost = detail::cost_of(job, a.best.ranks, a.bucket_bytes);
  a.buckets = cost.buckets;
  a.algorithm = cheapest_all_reduce(job.network, a.best.ranks, cost.largest);
  a.period = std::max(1, static_cast<int>(std::ceil(a.best.exposed / (0.1 / 0.9 * job.step_seconds) - 1e-9)));
  detail::choose_pipeline(a);
  return a;
}

}  // namespace skein::inline SKEIN_ABI::plan

namespace skein::inline SKEIN_ABI::plan::detail {

SKEIN_INLINE std::string ranks_in_words(const Advice& a) {
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
         said(" (%d of them) are best, the largest by the %s all-reduce: {.bucket_bytes = %ld}.\n", a.buckets,
              std::string(name_of(a.algorithm.algorithm)).c_str(), a.bucket_bytes);
    if (a.period > 1)
      t += said(
          "Exchanging every %d steps would hold the waiting below a tenth of the time, but replicas drift apart in between: "
          "compare SyncEvery<%d> of DataParallel with Period<%d> of ModelAverage.\n",
          a.period, a.period, a.period);
    else t += "Exchange in every step: the waiting is below a tenth of the time.\n";
  }
  return t;
}

SKEIN_INLINE std::string table_in_words(const Advice& a) {
  std::string t;
  t += "  ranks   all-reduce a step   waited for   epoch          speed-up  efficiency  pays\n";
  for (const RankForecast& f : a.table)
    t += said("  %5d   %-17s   %-10s   %-12s   %8.2f  %10.2f  %s\n", f.ranks, seconds_in_words(f.sync).c_str(),
              seconds_in_words(f.exposed).c_str(), seconds_in_words(f.epoch).c_str(), f.speedup, f.efficiency,
              f.ranks == 1 ? ""
              : f.pays     ? "yes"
                           : "no");
  return t;
}

}  // namespace skein::inline SKEIN_ABI::plan::detail

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE std::string Advice::text() const {
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

SKEIN_END_COLD
