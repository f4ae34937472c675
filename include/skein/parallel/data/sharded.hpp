// SPDX-License-Identifier: Apache-2.0
// Sharded<Stage>: each rank keeps the optimizer's state of its part of the parameters alone, updates that part, and all gather
// the new weights. Stage 1: gradients by all-reduce; stage 2: by reduce-scatter, half of that traffic, after which a rank has the
// step's gradients of its part alone. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
// SC 2020.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "../../comm/op.hpp"
#include "../../plan/buckets.hpp"
#include "../comm_policy_state.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <int ZeroLevel> inline constexpr bool is_a_zero_level = ZeroLevel == 1 || ZeroLevel == 2;

/// What both stages do: who owns what, and the gathering of it.
template <class Inner> class PartOwner : public Inner {
  using Comm = typename Inner::communicator;
  using Scalar = typename Inner::scalar;
  using Device = typename Inner::device;

 public:
  static constexpr Capabilities capabilities = Inner::capabilities | Capabilities{Capability::owns_part};
  static constexpr bool capturable = false;

  template <class Options> PartOwner(Comm& comm, const Options& options, const Replica<Scalar, Device>& replica)
      : Inner(comm, options, replica) {
    for (int r = 0; r < comm.size(); ++r) {
      const plan::Range part = plan::even_range(replica.stored, comm.size(), r);
      counts_.push_back(static_cast<std::size_t>(part.end - part.begin));
    }
  }

  plan::Range owned(long stored) const { return plan::even_range(stored, this->ranks(), this->rank()); }

  /// The new weights of all parts. Blocking.
  bool after_step(const StepDone& done) {
    const bool changed = Inner::after_step(done);
    if (!this->several()) return changed;
    const auto before = std::chrono::steady_clock::now();
    const auto all = this->replica().parameters;
    const plan::Range own = owned(this->replica().stored);
    gather(all.sub(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.end)), all);
    this->add_exposed(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    return true;
  }

  /// Sums over the ranks, of numbers in the device's memory.
  void reduce_there(DeviceSpan<double, Device> values) {
    if (this->several()) this->comm().all_reduce(values, Sum{});
  }
  /// An array of which every rank has its part becomes whole on all. Blocking.
  void gather(DeviceSpan<Scalar, Device> own, DeviceSpan<Scalar, Device> whole) {
    this->comm().all_gather_v(own, std::span<const std::size_t>(counts_), whole);
  }

 private:
  std::vector<std::size_t> counts_;
};

/// Stage 2.
template <class Inner> class ScattersGradients : public PartOwner<Inner> {
  using Base = PartOwner<Inner>;
  using Comm = typename Inner::communicator;
  using Scalar = typename Inner::scalar;
  using Device = typename Inner::device;

 public:
  template <class Options> ScattersGradients(Comm& comm, const Options& options, const Replica<Scalar, Device>& replica)
      : Base(comm, options, replica) {
    for (const auto& b : this->trace()) {
      Job job{{b.range.begin, std::min(b.range.end, replica.stored)}, {}, {}, {}};
      for (int r = 0; r < comm.size(); ++r)
        job.counts.push_back(common(job.range, plan::even_range(replica.stored, comm.size(), r)).size());
      job.own = common(job.range, this->owned(replica.stored));
      jobs_.push_back(std::move(job));
    }
  }

  void gradient_ready(long begin, long end) {
    const auto all = this->replica().gradients;
    if (next_ > 0 && begin < end && end == static_cast<long>(all.size)) start_over();
    if (begin < end) this->timer().start();
    while (next_ < jobs_.size() && begin < end && begin <= jobs_[next_].range.begin) {
      this->timer().begun(next_);
      Job& job = jobs_[next_];
      if (next_ == 0)
        (void)sums_.emplace(
            this->comm().start_all_reduce(all.sub(static_cast<std::size_t>(this->replica().stored), all.size), Sum{}));
      if (job.range.begin < job.range.end) {
        const auto bucket = all.sub(static_cast<std::size_t>(job.range.begin), static_cast<std::size_t>(job.range.end));
        const std::span<const std::size_t> counts(job.counts);
        (void)job.request.emplace(
            this->comm().start_reduce_scatter_v(bucket, counts, all.sub(job.own.begin, job.own.end), Sum{}));
      }
      ++next_;
    }
    if (this->options().poll) poll();
  }

  void finish_gradients() {
    this->timer().backward_ends();
    if (sums_) sums_->wait();
    for (std::size_t i = 0; i < next_; ++i) {
      if (jobs_[i].request) jobs_[i].request->wait();
      this->timer().complete(i);
    }
    start_over();
    this->add_exposed(this->timer().stop());
  }

 private:
  struct Part {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
  };
  struct Job {
    plan::Range range{};
    std::vector<std::size_t> counts;  // of each rank's piece
    Part own{};
    std::optional<typename Inner::Request> request;
  };

  /// Where they do not meet it is empty, and lies within a.
  static Part common(plan::Range a, plan::Range b) {
    const long begin = std::clamp(b.begin, a.begin, a.end), end = std::clamp(b.end, begin, a.end);
    return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
  }
  void start_over() {
    sums_.reset();
    for (Job& job : jobs_) job.request.reset();
    next_ = 0;
    (void)this->timer().stop();
  }
  void poll() {
    if (sums_ && !sums_->poll()) return;
    sums_.reset();
    for (std::size_t i = 0; i < next_; ++i) {
      if (!jobs_[i].request) continue;
      if (!jobs_[i].request->poll()) return;
      this->timer().complete(i);
      jobs_[i].request.reset();
    }
  }

  std::optional<typename Inner::Request> sums_;
  std::vector<Job> jobs_;
  std::size_t next_ = 0;
};
}  // namespace detail

/// An option of DataParallel. The optimizer's state is 1 / R of a whole one on each of R ranks; a checkpoint holds all of it, so
/// that it loads into any number of ranks, sharded or not.
template <int ZeroLevel> struct Sharded {
  static_assert(detail::is_a_zero_level<ZeroLevel>,
                "Sharded<1> shards the optimizer's state, Sharded<2> the gradients too: there is no other stage");
  static constexpr OptionKind kind = OptionKind::sharding;
  static constexpr bool scatters_gradients = ZeroLevel == 2;
  static plan::Range owned(long stored, int ranks, int rank) { return plan::even_range(stored, ranks, rank); }

  template <class Inner> using Around =
      std::conditional_t<scatters_gradients, detail::ScattersGradients<Inner>, detail::PartOwner<Inner>>;
};

}  // namespace skein::inline SKEIN_ABI::parallel
