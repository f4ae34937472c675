// SPDX-License-Identifier: Apache-2.0
// The running means of the layers' Kronecker factors: what a step's workers have added up becomes that of all workers and of all
// ranks, and a share of the factors. Every rank has all of them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/workers.hpp"
#include "../groups.hpp"
#include "../state_updates.hpp"
#include "kfac_layout.hpp"
#include "kfac_options.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// What a step tells it.
template <class Scalar> struct KfacCall {
  std::int64_t step = 1;       ///< 1 in the first
  double lr = 0;               ///< of this step
  double scale = 1;            ///< what the layers' output gradients are multiplied by, to be those of the mean loss
  bool own_scale = false;      ///< each rank has its own
  Scalar* gradient = nullptr;  ///< the whole one, in the layout of the parameters: to be written
  std::span<const ParameterGroupRange> ranges{};
};

/// Sums that ranks add up together: those of some layers, which have all ended backward where gradients from `parameter` on are
/// final.
struct KfacBucket {
  plan::Range packed{};
  long parameter = 0;
  std::size_t first = 0, last = 0;  ///< layers [first, last)
};

/// The factors of the layers of `layout`, which must outlive it. All workers, and all ranks, make the same calls in one order.
template <class Scalar> class KfacFactors {
 public:
  /// All factors are the identity.
  explicit KfacFactors(const KfacLayout& layout) : layout_(&layout), values_(size(layout.factor_values()), Scalar(0)) {
    for (std::size_t i = 0; i < layout.factor_count(); ++i) {
      const KfacFactor& f = layout.factor(i);
      for (long k = 0; k < f.count * f.n; ++k) values_[size(f.at + k * f.n + k % f.n)] = 1;
    }
    if (layout.ranks().grid.ranks == 1) return;
    packed_.assign(size(packed_values()), Scalar(0));
    make_buckets();
  }

  /// The executor's workers collect for this.
  template <class Executor> void attach(Executor& executor) {
    const int n = executor.workers().size();
    first_trained_ = executor.run_of(0).first_trained;
    runs_.clear();
    for (int w = 0; w < n; ++w) {
      auto& run = executor.run_of(w);
      run.places = layout_->places();
      run.factor_sums.assign(values_.size(), Scalar(0));
      runs_.push_back({&run.factor_sums, &run.collects});
    }
    std::vector<double> costs;
    for (std::size_t i = 0; i < layout_->factor_count(); ++i) costs.push_back(static_cast<double>(layout_->factor(i).size()));
    owner_ = plan::share_by_cost(costs, n);
  }

  /// Every worker, before the forward pass of a step, or of one of an accumulation's batches, of so many samples of this rank.
  void begin_pass(const Kfac& kfac, const Worker& w, std::int64_t step, long samples, bool accumulates) {
    const Run& run = runs_[size(w.index)];
    *run.collects = kfac.updates_factors(step);
    if (w.index == 0) packed_early_ = false;
    if (!*run.collects) return;
    if (!accumulates) std::fill(run.sums->begin(), run.sums->end(), Scalar(0));
    if (w.index == 0) samples_ = static_cast<double>(samples) + (accumulates ? samples_ : 0);
  }

  /// Worker 0, in the order of buckets, when all workers have ended backward of this one's layers: its sums lie in packed(),
  /// where the ranks' sums shall be before update().
  void pack(std::size_t bucket) {
    const KfacBucket& b = buckets_[bucket];
    for (std::size_t i = 2 * b.first; i < 2 * b.last; ++i) add_workers(layout_->factor(i), 1);
    pack_layers(b);
    packed_early_ = true;
  }
  std::span<Scalar> packed() { return packed_; }
  /// The last layers first.
  std::span<const KfacBucket> buckets() const { return buckets_; }

  /// Every worker, after all have ended backward: the means become kept_share() times themselves, and the rest is of the fresh
  /// ones. Those of layers that are frozen, whole, stay as they are.
  template <class Ranks> void update(const Kfac& kfac, const KfacCall<Scalar>& call, const Worker& w, const Ranks& ranks) {
    const double scale = call.scale;
    const bool own_scale = call.own_scale;
    const auto squared = [&](const KfacFactor& f) { return f.of_gradients || f.unit_wise ? scale * scale : 1; };
    if (!packed_early_)
      each_own(w, [&](const KfacFactor& f) { add_workers(f, static_cast<Scalar>(own_scale ? squared(f) : 1)); });
    if (!packed_.empty()) {
      if (!packed_early_) w.barrier();
      if (w.index == 0) add_ranks(ranks);
      w.barrier();
    }
    each_own(w, [&](const KfacFactor& f) {
      const long begin = layout_->place(f.layer).parameter, end = layout_->end(f.layer);
      if (end <= first_trained_ || all_frozen(call.ranges, begin, end)) return;
      const std::int64_t since = range_at(call.ranges, begin).since;
      keep(kfac.kept_share(call.step, since), f, own_scale ? 1 : squared(f));
    });
    w.barrier();
  }

  /// Values that a rank gives in an update: the lower triangles, for factors are symmetric, and the number of its samples.
  long packed_values() const {
    long n = 1;
    for (const plan::FactorSizes& s : layout_->sizes()) n += s.triangles();
    return n;
  }
  const Scalar* data(const KfacFactor& f) const { return values_.data() + f.at; }
  std::span<const Scalar> view(const KfacFactor& f) const { return {data(f), size(f.size())}; }
  /// Which is not finite, in a sentence without its end; "" where all are.
  std::string not_finite() const {
    for (std::size_t i = 0; i < layout_->factor_count(); ++i) {
      const std::span<const Scalar> values = view(layout_->factor(i));
      if (!std::all_of(values.begin(), values.end(), [](Scalar v) { return std::isfinite(v); }))
        return layout_->text(layout_->factor(i)) + " is not finite (Kfac)";
    }
    return {};
  }
  /// All of them, in the order of the layers.
  const std::vector<Scalar>& values() const { return values_; }
  void set_values(std::vector<Scalar>&& values) { values_ = std::move(values); }

 private:
  struct Run {
    std::vector<Scalar>* sums;
    bool* collects;
  };
  static std::size_t size(long n) { return static_cast<std::size_t>(n); }
  template <class Visit> void each_own(const Worker& w, const Visit& visit) {
    for (std::size_t i = 0; i < owner_.size(); ++i)
      if (owner_[i] == w.index) visit(layout_->factor(i));
  }
  /// Layers from the back, whole ones, at least 128 KiB together.
  void make_buckets() {
    constexpr long least = 128 * 1024 / static_cast<long>(sizeof(Scalar));
    long end = packed_values(), begin = end - 1;
    for (std::size_t last = layout_->layers(), k = last; k-- > 0;) {
      begin -= layout_->sizes()[k].triangles();
      if (k > 0 && end - begin < least) continue;
      buckets_.push_back({{begin, end}, layout_->place(k).parameter, k, last});
      end = begin, last = k;
    }
  }
  void pack_layers(const KfacBucket& b) {
    Scalar* at = packed_.data() + b.packed.begin;
    each_row(b, [&](Scalar* row, long n) { at = std::copy_n(row, n, at); });
    if (b.last == layout_->layers()) *at = static_cast<Scalar>(samples_);
  }
  /// The sums of this rank become those of all ranks, and so does the number of samples.
  template <class Ranks> void add_ranks(const Ranks& ranks) {
    if (!packed_early_) {
      for (const KfacBucket& b : buckets_) pack_layers(b);
      ranks.sum(std::span(packed_));
    }
    for (const KfacBucket& b : buckets_) {
      const Scalar* at = packed_.data() + b.packed.begin;
      each_row(b, [&](Scalar* row, long n) { std::copy_n(at, n, row), at += n; });
    }
    samples_ = static_cast<double>(packed_.back());
  }
  /// visit(row, values) of the lower triangles of this rank's sums.
  template <class Visit> void each_row(const KfacBucket& b, const Visit& visit) {
    for (std::size_t i = 2 * b.first; i < 2 * b.last; ++i) {
      const KfacFactor& f = layout_->factor(i);
      for (long row = 0; row < f.count * f.n; ++row) visit(runs_[0].sums->data() + f.at + row * f.n, row % f.n + 1);
    }
  }
  /// Makes the lower triangle of worker 0's sums `scale` times those of all workers. Ranks may have scales of their own.
  void add_workers(const KfacFactor& f, Scalar scale) {
    Scalar* const to = runs_[0].sums->data() + f.at;
    for (std::size_t w = 1; w < runs_.size(); ++w) {
      const Scalar* const from = runs_[w].sums->data() + f.at;
      for (long i = 0; i < f.count * f.n; ++i)
        for (long j = 0; j <= i % f.n; ++j) to[i * f.n + j] += from[i * f.n + j];
    }
    if (scale == 1) return;
    for (long i = 0; i < f.count * f.n; ++i)
      for (long j = 0; j <= i % f.n; ++j) to[i * f.n + j] *= scale;
  }
  void keep(double share, const KfacFactor& f, double scale) {
    const Scalar kept = static_cast<Scalar>(share);
    const Scalar fresh = static_cast<Scalar>(scale * (1 - share) / std::max(1.0, samples_));
    const Scalar* sum = runs_[0].sums->data() + f.at;
    Scalar* to = values_.data() + f.at;
    for (long k = 0; k < f.count; ++k, to += f.n * f.n, sum += f.n * f.n)
      for (long i = 0; i < f.n; ++i)
        for (long j = 0; j <= i; ++j) to[j * f.n + i] = to[i * f.n + j] = kept * to[i * f.n + j] + fresh * sum[i * f.n + j];
  }

  const KfacLayout* layout_;
  std::vector<Scalar> values_;
  std::vector<Run> runs_;
  std::vector<int> owner_;      ///< workers of this rank
  std::vector<Scalar> packed_;  ///< lower triangles and the number of samples, on their way between ranks
  std::vector<KfacBucket> buckets_;
  bool packed_early_ = false;  ///< in this step: during backward
  long first_trained_ = 0;     ///< parameters before it are frozen
  double samples_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::optim
