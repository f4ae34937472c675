// SPDX-License-Identifier: Apache-2.0
// In which steps gradients are exchanged, as options of DataParallel: SyncEvery<N>, SyncEveryEpochs<N>, SyncFirst<N>. In the
// steps between each rank steps with its own gradients: replicas drift apart (this is no accumulation), until models are averaged
// (ModelAverage, in a Compose with this), or the fit ends.
#pragma once
#include <cstdint>
#include <string>

#include "../comm_policy_state.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <int N> inline constexpr bool is_a_period = N >= 1;
template <int N> inline constexpr bool is_a_count = N >= 0;
}  // namespace detail

/// The base of such options: gradients are exchanged in the steps for which exchange_now(true) was said last. The losses of steps
/// are each rank's own. At the end of a fit replicas that have drifted become their mean.
template <class Inner> class ExchangesSometimes : public Inner {
 public:
  static constexpr bool local_sums = true;
  static constexpr Capabilities capabilities =
      Inner::capabilities | Capabilities{Capability::lets_weights_drift, Capability::keeps_state};
  static constexpr unsigned archive_version = 1 + Inner::archive_version;  // 0: files without drifted_
  using Inner::Inner;
  bool synchronizes_gradients() const { return now_ && Inner::synchronizes_gradients(); }
  /// Reduce::Sum makes steps of all ranks' gradients that many times as large; those of its own are what they are.
  double gradient_factor() const { return now_ ? Inner::gradient_factor() : 1; }
  bool after_step(const StepDone& done) {
    drifted_ = drifted_ || !now_;
    return Inner::after_step(done);
  }
  bool finish() {
    const bool changed = Inner::finish();
    if (!this->several() || !drifted_) return changed;
    this->average_weights();
    drifted_ = false;
    return true;
  }
  bool all_met() const { return now_; }
  SameWeights same_weights() const { return SameWeights::after_fit; }
  /// Another policy has made the replicas one at the end of a fit: finish() has nothing left to do.
  void weights_agree() { drifted_ = false; }
  /// A file without a word of it has weights that all ranks take.
  void forget() {
    Inner::forget();
    drifted_ = false;
  }
  /// What serialize() saves is of this policy: whether the replicas have drifted, and what the exchange keeps.
  std::string saved_as() const {
    if constexpr (inner_keeps) return Inner::saved_as();
    else return "drift";
  }
  template <class Archive> void serialize(Archive& archive, unsigned version) {
    if constexpr (inner_keeps) Inner::serialize(archive, version > 0 ? version - 1 : 0);
    if (version >= 1) (archive & drifted_);
  }

 protected:
  void exchange_now(bool now) { now_ = now; }

 private:
  static constexpr bool inner_keeps = Inner::capabilities.has(Capability::keeps_state);
  bool now_ = true, drifted_ = false;
};

/// Gradients are exchanged in the steps N, 2 N, 3 N, ...
template <int N> struct SyncEvery : OptionBase {
  static constexpr OptionKind kind = OptionKind::when;
  static std::string described() { return text("SyncEvery<{}>", N); }
  template <class Inner> class Around : public ExchangesSometimes<Inner> {
    static_assert(detail::is_a_period<N>,
                  "SyncEvery<N>: a period is 1 step or more; for gradients that are never exchanged take ModelAverage alone");
    using Base = ExchangesSometimes<Inner>;

   public:
    using Base::Base;
    bool before_step(std::int64_t step) {
      this->exchange_now(step % N == 0);
      return Base::before_step(step);
    }
  };
};

/// Gradients are exchanged in all steps of every N-th epoch, the first of them the N-th.
template <int N> struct SyncEveryEpochs : OptionBase {
  static constexpr OptionKind kind = OptionKind::when;
  static std::string described() { return text("SyncEveryEpochs<{}>", N); }
  template <class Inner> class Around : public ExchangesSometimes<Inner> {
    static_assert(
        detail::is_a_period<N>,
        "SyncEveryEpochs<N>: a period is 1 epoch or more; for gradients that are never exchanged take ModelAverage alone");
    using Base = ExchangesSometimes<Inner>;

   public:
    using Base::Base;
    void epoch_begins(std::int64_t epoch) {
      this->exchange_now((epoch + 1) % N == 0);
      Base::epoch_begins(epoch);
    }
  };
};

/// Gradients are exchanged in the first N steps and then no more: the first phase of post-local SGD (Lin et al., "Don't Use Large
/// Mini-Batches, Use Local SGD", ICLR 2020). PostLocalSgd has the second with it.
template <int N> struct SyncFirst : OptionBase {
  static constexpr OptionKind kind = OptionKind::when;
  static std::string described() { return text("SyncFirst<{}>", N); }
  static constexpr int steps = N;
  template <class Inner> class Around : public ExchangesSometimes<Inner> {
    static_assert(detail::is_a_count<N>, "SyncFirst<N>: there cannot be less than 0 steps");
    using Base = ExchangesSometimes<Inner>;

   public:
    using Base::Base;
    bool before_step(std::int64_t step) {
      this->exchange_now(step <= N);
      return Base::before_step(step);
    }
  };
};

}  // namespace skein::inline SKEIN_ABI::parallel
