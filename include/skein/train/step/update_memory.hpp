// SPDX-License-Identifier: Apache-2.0
// What an update remembers from step to step: where the workers' gradients are, which of them have to be summed, and the numbers
// that workers hand to each other.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "../../optim/clip.hpp"
#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What an update remembers from step to step, for all workers.
template <class Scalar> struct UpdateMemory {
  struct Segment {
    plan::Range range{};
    bool summed = true;  ///< over workers; else worker 0 has the whole gradient
  };
  std::vector<const Scalar*> gradients{};  ///< one array a worker
  Scalar* summed_gradient = nullptr;       ///< where a chain's stages make it: the model's own array
  std::vector<Segment> segments{};
  std::vector<double> numbers{};  ///< one a worker, or one a piece of the arena
  double shared = 0;
  double norm = 0;          ///< of the last step that took one
  double loss = 0;          ///< of all samples whose gradients the step has, where its sums are this rank's own
  bool overflowed = false;  ///< did the last step that looked find a gradient that is not finite
  bool finite = true;       ///< was the number that ranks have last agreed about a finite one on all of them

  /// For a rank that serves: one array, and nobody to share it with.
  void serve(Scalar* array, long stored) {
    gradients.assign(1, array);
    summed_gradient = array;
    segments.assign(1, {{0, stored}, false});
    numbers.assign(1, 0);
  }
  /// For an executor's workers; with virtual shards one array has all gradients.
  template <class Executor> void reserve(Executor& executor, long stored, bool shards) {
    const int n = executor.workers().size();
    gradients.clear();
    for (int w = 0; w < (shards ? 1 : n); ++w) gradients.push_back(executor.gradients(w));
    summed_gradient = executor.gradients(0);
    numbers.assign(static_cast<std::size_t>(std::max(n, optim::norm_pieces)), 0);
    segments.clear();
    long at = 0;
    if (!shards)
      for (const plan::Range& r : executor.summed_ranges()) {
        if (r.begin > at) segments.push_back({{at, r.begin}, false});
        segments.push_back({r, true});
        at = r.end;
      }
    if (at < stored) segments.push_back({{at, stored}, false});
  }
};

}  // namespace skein::inline SKEIN_ABI::train
