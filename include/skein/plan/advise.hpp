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
  AllReduceChoice algorithm{};  ///< of the largest bucket
  int period = 1;               ///< steps between exchanges that would hold them below a tenth of the time
  std::string schedule{};       ///< of a pipeline over up to four ranks
  int stages = 1;
  double bubble = 0, gpipe_bubble = 0;
  int live = 0, gpipe_live = 0;

  /// Sentences, one a line.
  std::string text() const;
};

namespace detail {
std::string said(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string seconds_in_words(double s);
std::string bytes_in_words(double b);
StepCost cost_of(const Job& j, int ranks, long bucket_bytes);
/// The bucket size of the shortest step: powers of two, and all at once; the larger of two that cost the same.
long best_bucket(const Job& j, int ranks);
RankForecast forecast(const Job& j, int ranks);

/// 1, 2, 3, 4, 6, 8, 12, ... ranks. More than batches in an epoch would have nothing to do.
std::vector<int> rank_counts(const Job& job);

/// A pipeline of at most four stages: the shortest table, and of those the one that keeps least.
void choose_pipeline(Advice& a);
}  // namespace detail

/// Throws ArgumentError where the job says too little.
Advice advise(const Job& job);

namespace detail {
/// How many ranks, in which buckets, by which all-reduce, how often.
std::string ranks_in_words(const Advice& a);
/// A line a number of ranks.
std::string table_in_words(const Advice& a);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "advise.ipp"
#endif
