// SPDX-License-Identifier: Apache-2.0
// One bucket on its way: as it is, or encoded. Started in the same order on all ranks; poll() and wait() end with the sum over
// the ranks in the gradients' place. Memory is made once.
#pragma once
#include "compressed_bucket.hpp"
#include "exchange_sum.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// What a job needs of its exchange.
template <class Comm, class Scalar, class A> struct ExchangeCall {
  Comm& comm;
  Scalar* gradients;
  const A& algorithm;
  comm::Counts& counts;
};

/// Encoded by C, added by A where C is linear, else gathered and added by each rank in the order of the ranks.
template <class Comm, class Scalar, class C, class A> class ExchangeJob {
  using Element = typename C::Element;
  using Call = ExchangeCall<Comm, Scalar, A>;
  using Gather = decltype(std::declval<Comm&>().start_all_gather(std::declval<DeviceSpan<const Element, Cpu>>(),
                                                                 std::declval<DeviceSpan<Element, Cpu>>()));

 public:
  static constexpr bool keeps_residual = CompressedBucket<C, Scalar>::keeps_residual,
                        remembers = CompressedBucket<C, Scalar>::remembers;

  ExchangeJob(std::span<const plan::Entry> entries, plan::Range range, long stored, int ranks)
      : bucket_(entries, {range.begin, std::min(range.end, stored)}), ranks_(static_cast<std::size_t>(ranks)) {
    if constexpr (!C::linear) gathered_.resize(ranks_ * bucket_.elements(0));
  }

  void begin(const Call& call, int tag) {
    going_ = true;
    const std::span<Element> wire = bucket_.encode(call.gradients);
    if (wire.empty()) return;
    if constexpr (C::linear) {
      sum_.start(call.comm, wire, call.algorithm, tag, call.counts);
    } else {
      call.counts += {.collectives = 1, .payload = static_cast<long>(wire.size_bytes())};
      (void)gather_.emplace(call.comm.start_all_gather(DeviceSpan<const Element, Cpu>{wire.data(), wire.size()},
                                                       DeviceSpan<Element, Cpu>{gathered_.data(), gathered_.size()}));
    }
  }
  /// Ends a round and begins the next: all ranks at the same place in their order of calls.
  void next_round(const Call& call, int tag) {
    sum_.wait();
    if (const std::span<Element> wire = bucket_.next_round(++round_); !wire.empty())
      sum_.start(call.comm, wire, call.algorithm, tag, call.counts);
  }
  bool poll(const Call& call) {
    if (!going_) return true;
    if (gather_ && gather_->poll()) gather_.reset();
    if (!sum_.poll() || gather_ || round_ + 1 < C::rounds) return false;
    complete(call);
    return true;
  }
  void wait(const Call& call) {
    if (!going_) return;
    sum_.wait();
    if (gather_) gather_->wait();
    gather_.reset();
    complete(call);
  }
  void drop() {
    sum_.drop();
    gather_.reset();
    going_ = false;
    round_ = 0;
  }

  comm::Counts planned(const A& algorithm, int ranks, int rank) const {
    comm::Counts all;
    for (int round = 0; round < C::rounds; ++round) {
      const std::size_t n = bucket_.elements(round);
      if (n == 0) continue;
      if constexpr (C::linear) all += planned_sum<Element>(algorithm, ranks, rank, n);
      else all += {.collectives = 1, .payload = static_cast<long>(n * sizeof(Element))};
    }
    return all;
  }
  std::size_t wire_bytes() const {
    std::size_t n = 0;
    for (int round = 0; round < C::rounds; ++round) n += bucket_.elements(round);
    return n * sizeof(Element);
  }
  CompressedBucket<C, Scalar>& bucket() { return bucket_; }
  const CompressedBucket<C, Scalar>& bucket() const { return bucket_; }

 private:
  void complete(const Call& call) {
    if constexpr (C::linear) {
      bucket_.decode(bucket_.wire(), call.gradients, true, false);
    } else {
      const std::size_t piece = bucket_.elements(0);
      for (std::size_t r = 0; r < ranks_; ++r)
        bucket_.decode(std::span<const Element>(gathered_).subspan(r * piece, piece), call.gradients, false, r > 0);
    }
    going_ = false;
    round_ = 0;
  }

  CompressedBucket<C, Scalar> bucket_;
  std::size_t ranks_;
  std::vector<Element> gathered_;
  RunningSum<Comm, std::conditional_t<C::linear, Element, float>, A> sum_;  // not used by what is gathered
  std::optional<Gather> gather_;
  bool going_ = false;
  int round_ = 0;
};

/// Exchanges a bucket as it is, by an algorithm: gaps and the sums of the batch with it.
template <class Comm, class Scalar, class A> class ExchangeJob<Comm, Scalar, Uncompressed, A> {
  using Call = ExchangeCall<Comm, Scalar, A>;

 public:
  static constexpr bool keeps_residual = false, remembers = false;

  ExchangeJob(std::span<const plan::Entry>, plan::Range range, long, int) : range_(range) {}
  void begin(const Call& call, int tag) {
    sum_.start(call.comm, std::span<Scalar>(call.gradients + range_.begin, count()), call.algorithm, tag, call.counts);
  }
  bool poll(const Call&) { return sum_.poll(); }
  void wait(const Call&) { sum_.wait(); }
  void drop() { sum_.drop(); }
  comm::Counts planned(const A& algorithm, int ranks, int rank) const {
    return planned_sum<Scalar>(algorithm, ranks, rank, count());
  }
  std::size_t wire_bytes() const { return count() * sizeof(Scalar); }

 private:
  std::size_t count() const { return static_cast<std::size_t>(range_.end - range_.begin); }
  plan::Range range_;
  RunningSum<Comm, Scalar, A> sum_;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
