// SPDX-License-Identifier: Apache-2.0
// What Kfac remembers of a training: a layer's factors and what divides by them. Inverses are shared out among the ranks by what
// they cost, and all work of a rank among its workers, factor by factor and layer by layer. Pauloski et al., "KAISA", SC 2021,
// arXiv:2107.01739: every rank has all inverses and preconditions the whole gradient.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/workers.hpp"
#include "../../nn/kronecker.hpp"
#include "../../plan/share_by_cost.hpp"
#include "../groups.hpp"
#include "kfac.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// The ranks of a training that has one.
struct OneRank {
  static constexpr int rank() { return 0; }
  static constexpr int size() { return 1; }
  template <class Span> static void sum(Span) {}
  template <class Span> static void broadcast(Span, int) {}
};

/// What a step tells it.
template <class Scalar> struct KfacCall {
  std::int64_t step = 1;       ///< 1 in the first
  double lr = 0;               ///< of this step
  double scale = 1;            ///< what the layers' output gradients are multiplied by, to be those of the mean loss
  Scalar* gradient = nullptr;  ///< the whole one, in the layout of the parameters: to be written
  std::span<const ParameterGroupRange> ranges{};
};

/// Factors, what divides by them, and the workers' sums. All workers call the same in the same order, and so do all ranks.
template <class Scalar> class KfacState {
  static_assert(SKEIN_WITH_LAPACK || sizeof(Scalar) == 0,
                "Kfac needs LAPACK, and this program is built without it: link skein::lapack (apt install libopenblas-dev, or "
                "liblapack-dev, and configure again)");

 public:
  using Call = KfacCall<Scalar>;
  explicit KfacState(std::span<const plan::LayerNode> layers) {
    for (const plan::LayerNode& layer : layers)
      if (layer.kronecker_a > 0) {
        const long a = layer.kronecker_a, g = layer.kronecker_g;
        places_.push_back({layer.parameter, a, g, places_.empty() ? 0 : end_of(places_.back())});
        names_.emplace_back(layer.kind);
      }
    const auto size = static_cast<std::size_t>(places_.empty() ? 0 : end_of(places_.back()));
    factors_.assign(size, Scalar(0));
    inverses_.assign(size, Scalar(0));
    for (const nn::KroneckerPlace& p : places_) {
      eigenvalues_.insert(eigenvalues_.end(), static_cast<std::size_t>(p.a + p.g), Scalar(0));
      for (const Factor& f : {factor(p, false), factor(p, true)})
        for (long i = 0; i < f.n; ++i) factors_[static_cast<std::size_t>(f.at + i * f.n + i)] = 1;
    }
  }

  /// The executor's workers collect for this; after each new executor. The rank among those that have one gradient.
  template <class Executor> void attach(Executor& executor, int rank, int ranks) {
    const int n = executor.workers().size();
    runs_.clear();
    for (int w = 0; w < n; ++w) {
      auto& run = executor.run_of(w);
      run.places = places_;
      run.factor_sums.assign(factors_.size(), Scalar(0));
      runs_.push_back({&run.factor_sums, &run.collects});
    }
    work_.assign(static_cast<std::size_t>(n), {});
    std::vector<double> of_factors, of_layers;
    for (const nn::KroneckerPlace& p : places_) {
      const double a = static_cast<double>(p.a), g = static_cast<double>(p.g);
      of_factors.push_back(a * a * a);
      of_factors.push_back(g * g * g);
      of_layers.push_back(a * g * (a + g));
    }
    factor_owner_ = plan::share_by_cost(of_factors, n);
    layer_owner_ = plan::share_by_cost(of_layers, n);
    inverse_rank_ = plan::share_by_cost(of_factors, ranks);
    for (std::size_t i = 0; i < of_factors.size(); ++i)
      if (inverse_rank_[i] != rank) of_factors[i] = 0;
    inverse_owner_ = plan::share_by_cost(of_factors, n);
    std::size_t largest = 0;
    directions_.clear();
    for (const nn::KroneckerPlace& p : places_)
      largest = std::max(largest, directions_.emplace_back(static_cast<std::size_t>(p.a * p.g)).size());
    for (Work& w : work_) w.product.assign(largest, Scalar(0));
    products_.assign(places_.size(), 0);
    packed_.assign(ranks > 1 ? static_cast<std::size_t>(packed_values()) + 1 : 0, Scalar(0));
  }

  /// Every worker, before the forward pass of a step, or of one of an accumulation's batches, of so many samples of this rank.
  void begin_pass(const Kfac& kfac, const Worker& w, std::int64_t step, long samples, bool accumulates) {
    const Run& run = runs_[static_cast<std::size_t>(w.index)];
    *run.collects = kfac.updates_factors(step);
    if (!*run.collects) return;
    if (!accumulates) std::fill(run.sums->begin(), run.sums->end(), Scalar(0));
    if (w.index == 0) samples_ = static_cast<double>(samples) + (accumulates ? samples_ : 0);
  }

  /// Every worker, after all have ended backward: the gradient in call.gradient becomes the preconditioned one. Over several
  /// ranks the gradient is that of all, and so are the factors: `ranks` has rank(), size(), sum(span) and broadcast(span, root).
  template <class Ranks = OneRank>
  void precondition(const Kfac& kfac, const Call& call, const Worker& w, const Ranks& ranks = {}) {
    if (kfac.updates_factors(call.step)) update_factors(kfac, call.scale * call.scale, w, ranks);
    if (kfac.updates_inverses(call.step)) update_inverses(kfac, w, ranks);
    each_layer(w, [&](std::size_t k) {
      products_[k] = frozen(places_[k], call.ranges) ? 0 : direction(kfac, k, call.gradient, work(w));
    });
    w.barrier();
    double sum = 0;  // by layers, so that it does not depend on the number of workers, in which ranks may differ
    for (const double product : products_) sum += product;
    sum = std::abs(sum) * call.lr * call.lr;
    const double scale = kfac.kl_clip > 0 && sum > 0 ? std::min(1.0, std::sqrt(kfac.kl_clip / sum)) : 1;
    each_layer(w, [&](std::size_t k) {
      if (!frozen(places_[k], call.ranges)) write(k, static_cast<Scalar>(scale), call.gradient);
    });
    w.barrier();
  }

  /// Values that a rank gives where factors are updated: the lower triangles, for they are symmetric.
  long packed_values() const {
    long n = 0;
    for (const nn::KroneckerPlace& p : places_) n += triangle(p.a) + triangle(p.g);
    return n;
  }
  /// Values that the ranks together give where inverses are updated.
  long inverse_values(const Kfac& kfac) const {
    return static_cast<long>(inverses_.size()) +
           (kfac.inverse == KfacInverse::eigen ? static_cast<long>(eigenvalues_.size()) : 0);
  }

  /// Layers with factors, and their factors: (n, n), A before G.
  std::size_t layers() const { return places_.size(); }
  std::span<const Scalar> factor_a(std::size_t layer) const { return view(factor(places_[layer], false)); }
  std::span<const Scalar> factor_g(std::size_t layer) const { return view(factor(places_[layer], true)); }
  /// What a file has of it: with that a training goes on with the same bits.
  struct Saved {
    std::vector<Scalar> factors, inverses, eigenvalues;
    template <class Archive> void serialize(Archive& archive, unsigned) { (archive & factors & inverses & eigenvalues); }
    bool same_sizes(const Saved& other) const {
      return factors.size() == other.factors.size() && inverses.size() == other.inverses.size() &&
             eigenvalues.size() == other.eigenvalues.size();
    }
  };
  Saved saved() const { return {factors_, inverses_, eigenvalues_}; }
  void take(Saved&& saved) {
    factors_ = std::move(saved.factors);
    inverses_ = std::move(saved.inverses);
    eigenvalues_ = std::move(saved.eigenvalues);
  }

 private:
  struct Factor {
    long at = 0, n = 0, values = 0;  ///< in factors_ and inverses_: (n, n); in eigenvalues_: n
    bool of_gradients = false;
    std::size_t layer = 0;
  };
  struct Run {
    std::vector<Scalar>* sums;
    bool* collects;
  };
  using Work = KfacWork<Scalar>;

  static long end_of(const nn::KroneckerPlace& p) { return p.sums + p.a * p.a + p.g * p.g; }
  Work& work(const Worker& w) { return work_[static_cast<std::size_t>(w.index)]; }
  Factor factor(const nn::KroneckerPlace& p, bool of_gradients) const {
    long values = 0;
    std::size_t layer = 0;
    for (; &places_[layer] != &p; ++layer) values += places_[layer].a + places_[layer].g;
    if (of_gradients) return {p.sums + p.a * p.a, p.g, values + p.a, true, layer};
    return {p.sums, p.a, values, false, layer};
  }
  std::span<const Scalar> view(const Factor& f) const { return std::span(factors_).subspan(size(f.at), size(f.n * f.n)); }
  static std::size_t size(long n) { return static_cast<std::size_t>(n); }

  static long triangle(long n) { return n * (n + 1) / 2; }
  template <class Visit> void each_factor(const std::vector<int>& owner, int who, const Visit& visit) {
    for (std::size_t i = 0; i < owner.size(); ++i)
      if (owner[i] == who) visit(factor(places_[i / 2], i % 2 == 1));
  }
  template <class Visit> void each_layer(const Worker& w, const Visit& visit) {
    for (std::size_t k = 0; k < places_.size(); ++k)
      if (layer_owner_[k] == w.index) visit(k);
  }
  static bool frozen(const nn::KroneckerPlace& p, std::span<const ParameterGroupRange> ranges) {
    const long end = p.parameter + p.a * row_pitch(p.g);
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const ParameterGroupRange& r) { return r.frozen && r.begin < end && p.parameter < r.end; });
  }

  template <class Ranks> void update_factors(const Kfac& kfac, double scale, const Worker& w, const Ranks& ranks) {
    each_factor(factor_owner_, w.index, [&](const Factor& f) { add_workers(f); });
    if (ranks.size() > 1) add_ranks(w, ranks);
    each_factor(factor_owner_, w.index, [&](const Factor& f) { update(kfac, f, f.of_gradients ? scale : 1); });
    w.barrier();
  }
  /// Each inverse is made by one rank, and sent to the others.
  template <class Ranks> void update_inverses(const Kfac& kfac, const Worker& w, const Ranks& ranks) {
    for (std::size_t i = 0; i < inverse_owner_.size(); ++i)
      if (inverse_rank_[i] == ranks.rank() && inverse_owner_[i] == w.index)
        invert(kfac, factor(places_[i / 2], i % 2 == 1), work(w));
    w.barrier();
    if (ranks.size() == 1) return;
    if (w.index == 0)
      for (std::size_t i = 0; i < inverse_rank_.size(); ++i) {
        const Factor f = factor(places_[i / 2], i % 2 == 1);
        ranks.broadcast(std::span(inverses_).subspan(size(f.at), size(f.n * f.n)), inverse_rank_[i]);
        if (kfac.inverse == KfacInverse::eigen)
          ranks.broadcast(std::span(eigenvalues_).subspan(size(f.values), size(f.n)), inverse_rank_[i]);
      }
    w.barrier();
  }
  /// The sums of this rank become those of all ranks, and so does the number of samples.
  template <class Ranks> void add_ranks(const Worker& w, const Ranks& ranks) {
    w.barrier();
    if (w.index == 0) {
      Scalar* at = packed_.data();
      each_row([&](Scalar* row, long n) { at = std::copy_n(row, n, at); });
      *at = static_cast<Scalar>(samples_);
      ranks.sum(std::span(packed_));
      at = packed_.data();
      each_row([&](Scalar* row, long n) { std::copy_n(at, n, row), at += n; });
      samples_ = static_cast<double>(*at);
    }
    w.barrier();
  }
  /// visit(row, values) of the lower triangles of this rank's sums.
  template <class Visit> void each_row(const Visit& visit) {
    for (std::size_t i = 0; i < factor_owner_.size(); ++i) {
      const Factor f = factor(places_[i / 2], i % 2 == 1);
      for (long row = 0; row < f.n; ++row) visit(runs_[0].sums->data() + f.at + row * f.n, row + 1);
    }
  }
  /// Of the lower triangle: worker 0's sums become those of all.
  void add_workers(const Factor& f) {
    Scalar* const to = runs_[0].sums->data() + f.at;
    for (std::size_t w = 1; w < runs_.size(); ++w) {
      const Scalar* const from = runs_[w].sums->data() + f.at;
      for (long i = 0; i < f.n; ++i)
        for (long j = 0; j <= i; ++j) to[i * f.n + j] += from[i * f.n + j];
    }
  }
  void update(const Kfac& kfac, const Factor& f, double scale) {
    const Scalar keep = static_cast<Scalar>(kfac.factor_decay);
    const Scalar fresh = static_cast<Scalar>((1 - kfac.factor_decay) * scale / std::max(1.0, samples_));
    const Scalar* const sum = runs_[0].sums->data() + f.at;
    Scalar* const to = factors_.data() + f.at;
    for (long i = 0; i < f.n; ++i)
      for (long j = 0; j <= i; ++j) to[j * f.n + i] = to[i * f.n + j] = keep * to[i * f.n + j] + fresh * sum[i * f.n + j];
  }
  /// What is added to this factor's eigenvalues: pi sqrt(damping) or sqrt(damping) / pi; 0 where their products are damped.
  double own_damping(const Kfac& kfac, const Factor& f) const {
    if (!kfac.pi_correction) return kfac.inverse == KfacInverse::eigen ? 0 : kfac.damping;
    const nn::KroneckerPlace& p = places_[f.layer];
    const double a = mean_of_diagonal(p.a, view(factor(p, false))), g = mean_of_diagonal(p.g, view(factor(p, true)));
    const double pi = a > 0 && g > 0 ? std::sqrt(a / g) : 1;
    return std::sqrt(kfac.damping) * (f.of_gradients ? 1 / pi : pi);
  }
  void invert(const Kfac& kfac, const Factor& f, Work& work) {
    if (invert_factor(kfac.inverse, f.n, own_damping(kfac, f), factors_.data() + f.at, inverses_.data() + f.at,
                      eigenvalues_.data() + f.values, work))
      return;
    throw ArgumentError(std::string("Kfac: the factor ") + (f.of_gradients ? "G" : "A") + " of layer " + std::to_string(f.layer) +
                        " (" + names_[f.layer] +
                        ", of those that have factors) has no inverse, in double neither: the loss has "
                        "probably diverged. Take a larger .damping or a smaller rate, or look for NaN in the data");
  }
  /// directions_[k] = A^-1 gradient G^-1; returns their product with the gradient.
  double direction(const Kfac& kfac, std::size_t k, const Scalar* gradient, Work& work) {
    const nn::KroneckerPlace& p = places_[k];
    const Factor a = factor(p, false), g = factor(p, true);
    return divide_by_factors(
        kfac.inverse, kfac.pi_correction ? 0 : kfac.damping, {p.a, inverses_.data() + a.at, eigenvalues_.data() + a.values},
        {p.g, inverses_.data() + g.at, eigenvalues_.data() + g.values}, gradient + p.parameter, work, directions_[k].data());
  }
  void write(std::size_t k, Scalar scale, Scalar* gradient) const {
    const nn::KroneckerPlace& p = places_[k];
    for (long i = 0; i < p.a; ++i)
      for (long j = 0; j < p.g; ++j) gradient[p.parameter + i * row_pitch(p.g) + j] = scale * directions_[k][size(i * p.g + j)];
  }

  std::vector<nn::KroneckerPlace> places_;
  std::vector<std::string> names_;
  std::vector<Scalar> factors_, inverses_, eigenvalues_;
  std::vector<Run> runs_;
  std::vector<Work> work_;
  std::vector<int> factor_owner_, layer_owner_, inverse_owner_, inverse_rank_;  ///< workers of this rank; ranks
  std::vector<std::vector<Scalar>> directions_;
  std::vector<double> products_;  ///< of a layer's direction with its gradient
  std::vector<Scalar> packed_;    ///< lower triangles and the number of samples, on their way between ranks
  double samples_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::optim
