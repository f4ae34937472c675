// SPDX-License-Identifier: Apache-2.0
// BucketScheduler: which bucket of gradients is begun, polled and waited for when, whatever exchanges it. Buckets begin in
// backward order, each as soon as it is ready, and are looked at in that order, so that all ranks see the same sequence of calls.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "bucket_timer.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Over an exchange, which it owns; its calls are those of worker 0, in the order of a step.
template <class Exchange> class BucketScheduler {
 public:
  /// `all`: where the first gradients that are ready in a step end. The exchange is made of the other arguments.
  template <class... Arguments> BucketScheduler(const std::vector<plan::Range>& buckets, long all, Arguments&&... arguments)
      : exchange_(std::forward<Arguments>(arguments)...), buckets_(buckets.begin(), buckets.end()), timer_(buckets), all_(all) {}

  /// Gradients [begin, end) are final; an empty range is a chance to make progress.
  void ready(long begin, long end, bool poll) {
    if (next_ > 0 && begin < end && end == all_) start_over();
    if (end > begin) timer_.start();
    while (next_ < buckets_.size() && begin < end && begin <= buckets_[next_].begin) begin_next();
    if (poll)
      for (; done_ < next_ && exchange_.poll(done_); ++done_) timer_.complete(done_);
  }
  /// Backward has ended: returns when all buckets have the ranks' sums, with the seconds that it waited.
  double finish() {
    timer_.start();  // where nothing was ready before
    timer_.backward_ends();
    while (next_ < buckets_.size()) begin_next();
    exchange_.backward_ended();
    for (; done_ < next_; ++done_) {
      exchange_.wait(done_);
      timer_.complete(done_);
    }
    next_ = done_ = 0;
    return timer_.stop();
  }

  Exchange& exchange() { return exchange_; }
  const Exchange& exchange() const { return exchange_; }
  std::span<const plan::Range> buckets() const { return {buckets_.data(), buckets_.size()}; }
  const BucketTimer& timer() const { return timer_; }

 private:
  void begin_next() {
    timer_.begun(next_);
    exchange_.begin(next_++);
  }
  /// The first gradients of a step, and buckets are under way: a step was broken off (its capture was refused, say) and begins
  /// anew.
  void start_over() {
    exchange_.drop();
    next_ = done_ = 0;
    (void)timer_.stop();
  }

  Exchange exchange_;
  std::vector<plan::Range> buckets_;
  BucketTimer timer_;
  long all_;
  std::size_t next_ = 0, done_ = 0;  // buckets begun, and of those the leading ones that are complete
};

}  // namespace skein::inline SKEIN_ABI::parallel
