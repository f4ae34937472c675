// SPDX-License-Identifier: Apache-2.0
// The policy state that Compress and Algorithm make: gradients of a bucket are encoded, summed over the ranks by one algorithm,
// and decoded. Buckets begin in backward order as soon as they are ready, as those of DataParallelPolicyState, whose exchange
// this replaces. The sums of the batch behind the parameters are exact: they never pass a compressor.
#pragma once
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "../concepts.hpp"
#include "../data/data_parallel.hpp"
#include "exchange_job.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <class...> inline constexpr bool exchange_fits = false;

/// What an option inside has chosen.
template <class Inner> struct CompressorOf { using type = Uncompressed; };
template <class Inner>
requires requires { typename Inner::compressor_type; }
struct CompressorOf<Inner> {
  using type = typename Inner::compressor_type;
};
template <class Inner> struct AlgorithmOf { using type = OwnAllReduce; };
template <class Inner>
requires requires { typename Inner::algorithm_type; }
struct AlgorithmOf<Inner> {
  using type = typename Inner::algorithm_type;
};

template <class Device, class Compressor, class Chosen> consteval bool assert_exchange() {
  if constexpr (!std::same_as<Device, Cpu>)
    static_assert(exchange_fits<Device>,
                  "Compress and Algorithm work on values of the host: for a model on a GPU take DataParallel without them");
  else if constexpr (!Compressor::linear && by_table<Chosen>)
    static_assert(exchange_fits<Compressor>,
                  "Algorithm names an all-reduce, and this compressor is not linear: what it writes is gathered, not added. "
                  "Leave Algorithm out, or take a linear compressor");
  else if constexpr (!Compressor::linear && Compressor::rounds != 1)
    static_assert(exchange_fits<Compressor>, "a compressor of several rounds needs sums between them: it must be linear");
  return true;
}
}  // namespace detail

/// Around the policy state of DataParallel. A world of one encodes nothing.
template <class Inner, class Compressor, class Chosen> class ExchangePolicyState : public Inner {
  using Comm = typename Inner::communicator;
  using Scalar = typename Inner::scalar;
  using Device = typename Inner::device;
  static_assert(detail::assert_exchange<Device, Compressor, Chosen>());
  using Job = detail::ExchangeJob<Comm, Scalar, Compressor, Chosen>;
  static constexpr bool compresses = !std::same_as<Compressor, detail::Uncompressed>;

 public:
  static constexpr Capabilities capabilities =
      Inner::capabilities | (Job::keeps_residual || Job::remembers ? Capabilities{Capability::keeps_state} : Capabilities{});
  using compressor_type = Compressor;
  using algorithm_type = Chosen;

  template <class Options> ExchangePolicyState(Comm& comm, const Options& options, const Replica<Scalar, Device>& replica)
      : Inner(comm, options, replica) {}

  void start() {
    Inner::start();
    if (!this->several()) return;
    if constexpr (requires { algorithm_.check(2); }) algorithm_.check(this->ranks());
    if constexpr (requires(Comm & c) { algorithm_.prepare(c); }) algorithm_.prepare(this->comm());
    if (!jobs_.empty()) return;  // a training that was loaded starts once more
    const auto& replica = this->replica();
    for (const BucketTrace& b : Inner::trace()) {
      traces_.push_back(b);
      jobs_.emplace_back(replica.entries, b.range, replica.stored, this->ranks());
    }
    if (jobs_.size() > most_buckets)
      throw ArgumentError("DataParallel: Compress and Algorithm take up to " + std::to_string(most_buckets) +
                          " buckets, there are " + std::to_string(jobs_.size()) + ": raise bucket_bytes");
    this->comm().assert_same("the exchange of DataParallel (Compress, Algorithm)", exchange());
  }

  void gradient_ready(long begin, long end) {
    if (next_ > 0 && begin < end && end == static_cast<long>(this->replica().gradients.size)) start_over();
    if (!running_ && end > begin) {
      running_ = true;
      begin_ = Clock::now();
    }
    while (next_ < jobs_.size() && begin < end && begin <= traces_[next_].range.begin) {
      traces_[next_].started = now();
      traces_[next_].done = -1;
      if (compresses && next_ == 0) tail_.start(this->comm(), tail(), {}, 0, counts_);
      jobs_[next_].begin(call(), tag(next_, 0));
      ++next_;
    }
    if (this->options().poll) poll();
  }

  void finish_gradients() {
    backward_done_ = running_ ? now() : 0;
    const auto before = Clock::now();
    if constexpr (Compressor::rounds == 2)  // not earlier: all ranks begin their calls in one order
      for (std::size_t i = 0; i < next_; ++i) jobs_[i].second_round(call(), tag(i, 1));
    for (; done_ < next_; ++done_) {
      jobs_[done_].wait(call());
      if (traces_[done_].done < 0) traces_[done_].done = now();
    }
    tail_.wait();
    this->add_exposed(std::chrono::duration<double>(Clock::now() - before).count());
    next_ = done_ = 0;
    running_ = false;
  }

  std::span<const BucketTrace> trace() const { return traces_.empty() ? Inner::trace() : std::span<const BucketTrace>(traces_); }
  double backward_done() const { return backward_done_; }

  /// What this rank gives to the communicator in a step that exchanges, by the plan: closed forms over the buckets.
  comm::Counts planned() const {
    comm::Counts all;
    for (const Job& job : jobs_) all += job.planned(algorithm_, this->ranks(), this->rank());
    if (compresses && !jobs_.empty()) all += {.collectives = 1, .payload = static_cast<long>(tail_bytes())};
    return all;
  }
  /// What it has given so far, for gradients.
  const comm::Counts& counts() const { return counts_; }
  /// "bf16 by ring: 12 buckets, 5321 bytes".
  std::string exchange() const {
    std::size_t bytes = 0;
    for (const Job& job : jobs_) bytes += job.wire_bytes();
    return std::string(Compressor::name) + " by " + std::string(Chosen::name) + ": " + std::to_string(jobs_.size()) +
           " buckets, " + std::to_string(bytes) + " bytes";
  }
  const Chosen& algorithm() const { return algorithm_; }

  /// What error feedback has kept on this rank, of all values in the order of the buckets.
  std::vector<float> residual() const requires Job::keeps_residual {
    std::vector<float> all;
    for (const Job& job : jobs_) job.bucket().append_residual(all);
    return all;
  }
  /// Before a training is saved, on all ranks: rank 0 gets what the others keep.
  void before_save() {
    Inner::before_save();
    if constexpr (Job::keeps_residual)
      if (this->several()) {
        const std::vector<float> own = residual();
        kept_.residuals.resize(own.size() * static_cast<std::size_t>(this->ranks()));
        this->comm().all_gather(own, kept_.residuals);
      }
  }
  /// What serialize() saves is of this wire alone.
  static std::string saved_as() requires(capabilities.has(Capability::keeps_state)) {
    std::string kind = "Wire<" + std::string(Compressor::name) + ">";
    if constexpr (KeepsState<Inner>) kind += "," + Inner::saved_as();
    return kind;
  }
  /// Residuals of all ranks and what compressors have learnt. A training that goes on with another number of ranks gives each its
  /// part of the residuals' sum.
  template <class Archive>
  requires(capabilities.has(Capability::keeps_state)) void serialize(Archive& archive, [[maybe_unused]] unsigned version) {
    if constexpr (KeepsState<Inner>) Inner::serialize(archive, version);
    if constexpr (Archive::is_saving::value) {
      kept_.ranks = this->ranks();
      kept_.memory.clear();
      if constexpr (Job::remembers)
        for (const Job& job : jobs_) job.bucket().append_memory(kept_.memory);
    }
    (archive & kept_.ranks & kept_.residuals & kept_.memory);
    if constexpr (Archive::is_loading::value) restore();
    kept_ = {};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t most_buckets = 1000;
  static constexpr int first_tag = 29000;
  static int tag(std::size_t bucket, int round) { return first_tag + 2 * static_cast<int>(bucket) + round; }
  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  detail::Exchange<Comm, Scalar, Chosen> call() { return {this->comm(), this->replica().gradients.data, algorithm_, counts_}; }
  std::size_t tail_bytes() const { return tail().size_bytes(); }
  std::span<Scalar> tail() const {
    const auto& replica = this->replica();
    return {replica.gradients.data + replica.stored, replica.gradients.size - static_cast<std::size_t>(replica.stored)};
  }

  void start_over() {
    for (Job& job : jobs_) job.drop();
    tail_.drop();
    next_ = done_ = 0;
    running_ = false;
  }
  void poll() {
    for (; done_ < next_ && jobs_[done_].poll(call()); ++done_) traces_[done_].done = now();
  }

  void restore() {
    if constexpr (Job::keeps_residual) {
      const std::size_t n = residual().size(), ranks = static_cast<std::size_t>(std::max(1, kept_.ranks));
      if (jobs_.empty() || kept_.residuals.size() != n * ranks) return;  // of a training without ranks, or by another wire
      std::vector<float> own(n, 0.0f);
      const bool same = kept_.ranks == this->ranks();
      for (std::size_t r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < n; ++i)
          if (!same || static_cast<int>(r) == this->rank())
            own[i] += kept_.residuals[r * n + i] / (same ? 1.0f : static_cast<float>(this->ranks()));
      std::size_t at = 0;
      for (Job& job : jobs_) {
        const std::size_t count = job.bucket().values();
        job.bucket().set_residual(std::span<const float>(own).subspan(at, count));
        at += count;
      }
    }
    if constexpr (Job::remembers) {
      std::size_t n = 0, at = 0;
      for (const Job& job : jobs_) n += job.bucket().memory_size();
      if (kept_.memory.size() != n) return;
      for (Job& job : jobs_) at += job.bucket().set_memory(std::span<const float>(kept_.memory).subspan(at));
    }
  }

  struct Kept {
    int ranks = 0;
    std::vector<float> residuals, memory;
  };
  Chosen algorithm_{};
  std::vector<Job> jobs_;
  std::vector<BucketTrace> traces_;
  detail::RunningSum<Comm, Scalar, detail::OwnAllReduce> tail_;
  comm::Counts counts_{};
  Kept kept_{};
  std::size_t next_ = 0, done_ = 0;  // buckets begun, and of those the leading ones that are complete
  bool running_ = false;
  double backward_done_ = 0;
  Clock::time_point begin_{};
};

}  // namespace skein::inline SKEIN_ABI::parallel
