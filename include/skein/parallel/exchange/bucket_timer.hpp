// SPDX-License-Identifier: Apache-2.0
// BucketTimer: when each bucket of a step left and when it was seen complete, for whoever exchanges gradients. The clock starts
// with the step's first gradient; what it has seen is trace(), which stays until the next step that exchanges.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "../../core/clock.hpp"
#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// What happened to the buckets of the last step, in seconds since the step's first gradient was ready.
struct BucketTrace {
  plan::Range range{};
  double started = -1, done = -1;  ///< exchange begun; seen complete
};

/// The clock of one rank's exchange; its calls are those of worker 0, in the order of a step.
class BucketTimer {
 public:
  explicit BucketTimer(const std::vector<plan::Range>& buckets) : traces_(buckets.size()) {
    for (std::size_t i = 0; i < buckets.size(); ++i) traces_[i].range = buckets[i];
  }

  /// A gradient is ready: the clock starts, unless it runs.
  void start() {
    if (running_) return;
    running_ = true;
    begin_ = seconds_now();
  }
  /// Bucket i leaves.
  void begun(std::size_t i) {
    traces_[i].started = now();
    traces_[i].done = -1;
  }
  /// Bucket i has been seen complete; what was seen before stays.
  void complete(std::size_t i) {
    if (traces_[i].done < 0) traces_[i].done = now();
  }
  /// Backward has ended: what follows is waiting.
  void backward_ends() {
    waiting_ = seconds_now();
    backward_done_ = running_ ? now() : 0;
  }
  /// The exchange has ended, or was broken off. Returns the seconds since backward_ends().
  double stop() {
    running_ = false;
    return seconds_now() - waiting_;
  }

  std::span<const BucketTrace> trace() const { return {traces_.data(), traces_.size()}; }
  double backward_done() const { return backward_done_; }

 private:
  double now() const { return seconds_now() - begin_; }

  std::vector<BucketTrace> traces_;
  double begin_ = 0, waiting_ = 0, backward_done_ = 0;
  bool running_ = false;
};

}  // namespace skein::inline SKEIN_ABI::parallel
