// SPDX-License-Identifier: Apache-2.0
// What a step of data parallelism takes, as a pure function: backward goes from the last layer to the first, a bucket leaves once
// it is ready, buckets follow each other over the links, the step waits for the last one. It is what DataParallel does over
// SimComm, without threads: a test holds the two together. And whole trainings of thousands of ranks, with slow ones and jitter,
// on a vector of clocks.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "../core/random.hpp"
#include "alpha_beta.hpp"
#include "buckets.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// How much of the backward pass has been done once the gradients from `front` on are there: by flops, from the last layer.
constexpr double backward_share(std::span<const LayerNode> operations, long front) {
  if (front <= 0) return 1;
  double all = 0, done = 0, share = 0;
  for (const LayerNode& o : operations) all += static_cast<double>(o.flops);
  for (std::size_t i = operations.size(); i-- > 0;) {
    done += static_cast<double>(operations[i].flops);
    if (operations[i].parameters > 0 && operations[i].parameter >= front) share = all > 0 ? done / all : 1;
  }
  return share;
}

/// Seconds that a rank computes in a step.
struct ComputeTimes {
  double forward = 0, backward = 0, update = 0;
  constexpr double step() const { return forward + backward + update; }
};
/// A measured step in its parts: backward twice as long as forward (two products for one), the update 2 % of it.
constexpr ComputeTimes compute_times(double step_seconds) {
  return {0.98 / 3 * step_seconds, 1.96 / 3 * step_seconds, 0.02 * step_seconds};
}

/// What a step works on.
struct StepWork {
  std::span<const LayerNode> operations{};  ///< Model::program.ops()
  long scalars = 0;                         ///< of the gradient arena
  double scalar_bytes = 4;
  ComputeTimes compute{};
  long bucket_bytes = 128 * 1024;
  bool overlap = true;  ///< false: gradients are ready at the end, as in a network that runs depth-first
};

/// What it takes. sync: of all buckets one after the other; exposed: what of it the step waits for.
struct StepCost {
  double compute = 0, sync = 0, exposed = 0;
  int buckets = 0;
  double largest = 0;  ///< bytes of the largest bucket
  constexpr double seconds() const { return compute + exposed; }
};

/// Seconds of an all-reduce by the given algorithm, or by the cheapest.
constexpr double all_reduce_seconds(const Network& n, int ranks, double bytes, int algorithm = -1) {
  switch (algorithm) {
    case static_cast<int>(AllReduceAlgorithm::ring):
      return ring_seconds(n, ranks, bytes);
    case static_cast<int>(AllReduceAlgorithm::recursive_doubling):
      return recursive_doubling_seconds(n, ranks, bytes);
    case static_cast<int>(AllReduceAlgorithm::torus):
      return torus_seconds(n, ranks, bytes, torus_columns(n, ranks));
    case static_cast<int>(AllReduceAlgorithm::hierarchical):
      return hierarchical_seconds(n, ranks, bytes);
    default:
      return cheapest_all_reduce(n, ranks, bytes).seconds;
  }
}

/// A step in which gradients are exchanged over this network. Linear in the operations, times the buckets.
constexpr StepCost step_cost(const StepWork& work, const Network& network, int ranks, int algorithm = -1) {
  StepCost cost;
  cost.compute = work.compute.step();
  const double backward_ends = work.compute.forward + work.compute.backward;
  double free = 0;  // the links
  if (ranks > 1)
    for_each_bucket(work.operations, work.scalars,
                    std::max(1L, static_cast<long>(static_cast<double>(work.bucket_bytes) / work.scalar_bytes)), [&](Range b) {
                      const double ready =
                          work.overlap ? work.compute.forward + backward_share(work.operations, b.begin) * work.compute.backward
                                       : backward_ends;
                      const double bytes = work.scalar_bytes * static_cast<double>(b.end - b.begin);
                      const double seconds = all_reduce_seconds(network, ranks, bytes, algorithm);
                      free = std::max(free, ready) + seconds;
                      cost.sync += seconds;
                      ++cost.buckets;
                      cost.largest = std::max(cost.largest, bytes);
                    });
  cost.exposed = std::max(0.0, free - backward_ends);
  return cost;
}

/// Gradients pushed by `workers` to `servers` that hold equal parts, and weights pulled: each server takes and gives one message
/// at a time, so that its links are what everybody waits for. 2 W (alpha + beta B / S) for W workers of S <= W servers.
constexpr double server_seconds(const Level& level, int workers, int servers, double bytes) {
  return 2.0 * (workers > servers ? workers : servers) * (level.alpha + level.beta * bytes / servers);
}

/// A training of many ranks on clocks.
struct TrainingOnClocks {
  int ranks = 1;
  long steps = 1;
  double compute = 1, exposed = 0;  ///< of a step; what an exchange adds once all are there
  long period = 1;                  ///< steps between exchanges; 0: never
  double jitter = 0;                ///< each step of a rank takes exp(jitter * normal) times as long
  std::vector<double> slow{};       ///< factors of the first ranks; 1 for the others
  Seed seed{1};
};
/// Seconds until the last rank has ended. An exchange waits for the last rank; a late one delays all. Simulated. Throws
/// ArgumentError without ranks.
double seconds_of(const TrainingOnClocks& t);

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "step_cost.ipp"
#endif
