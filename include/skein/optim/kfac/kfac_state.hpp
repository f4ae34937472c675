// SPDX-License-Identifier: Apache-2.0
// What Kfac remembers of a training: a layer's factors and what divides by them, shared out among the workers of a rank by what
// they cost, factor by factor and layer by layer.
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
#include "../../ops/cpu/lapack.hpp"
#include "../groups.hpp"
#include "kfac.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Who of `workers` does which of these pieces of work: the largest first, each to him who has least.
inline std::vector<int> share_by_cost(std::span<const double> costs, int workers) {
  std::vector<std::size_t> order(costs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<double> load(static_cast<std::size_t>(workers), 0);
  std::vector<int> owner(costs.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += costs[i];
    owner[i] = static_cast<int>(least - load.begin());
  }
  return owner;
}

/// What a step tells it.
template <class Scalar> struct KfacCall {
  std::int64_t step = 1;       ///< 1 in the first
  double lr = 0;               ///< of this step
  double scale = 1;            ///< what the layers' output gradients are multiplied by, to be those of the mean loss
  Scalar* gradient = nullptr;  ///< the whole one, in the layout of the parameters: to be written
  std::span<const ParameterGroupRange> ranges;
};

/// Factors, what divides by them, and the workers' sums. All workers call the same in the same order.
template <class Scalar> class KfacState {
  static_assert(SKEIN_WITH_LAPACK || sizeof(Scalar) == 0,
                "Kfac needs LAPACK, and this program is built without it: link skein::lapack (apt install libopenblas-dev, or "
                "liblapack-dev, and configure again)");

 public:
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

  /// The executor's workers collect for this; after each new executor.
  template <class Executor> void attach(Executor& executor) {
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
    factor_owner_ = share_by_cost(of_factors, n);
    layer_owner_ = share_by_cost(of_layers, n);
    std::size_t largest = 0;
    for (const nn::KroneckerPlace& p : places_) largest = std::max(largest, static_cast<std::size_t>(p.a * p.g));
    for (Work& w : work_) w.product.assign(largest, Scalar(0));
    directions_.clear();
    for (const nn::KroneckerPlace& p : places_) directions_.emplace_back(static_cast<std::size_t>(p.a * p.g));
  }

  /// Every worker, before the forward pass of a step, or of one of an accumulation's batches, of so many samples of this rank.
  void begin_pass(const Kfac& kfac, const Worker& w, std::int64_t step, long samples, bool accumulates) {
    const Run& run = runs_[static_cast<std::size_t>(w.index)];
    *run.collects = kfac.updates_factors(step);
    if (!*run.collects) return;
    if (!accumulates) std::fill(run.sums->begin(), run.sums->end(), Scalar(0));
    if (w.index == 0) samples_ = static_cast<double>(samples) + (accumulates ? samples_ : 0);
  }

  /// Every worker, after all have ended backward: the gradient in call.gradient becomes the preconditioned one.
  void precondition(const Kfac& kfac, const KfacCall<Scalar>& call, const Worker& w) {
    if (kfac.updates_factors(call.step)) {
      each_factor(w, [&](const Factor& f) {
        add_workers(f);
        update(kfac, f, f.of_gradients ? call.scale * call.scale : 1);
      });
      w.barrier();
    }
    if (kfac.updates_inverses(call.step)) {
      each_factor(w, [&](const Factor& f) { invert(kfac, f, work(w)); });
      w.barrier();
    }
    double product = 0;
    each_layer(w, call, [&](std::size_t k) { product += direction(kfac, k, call.gradient, work(w)); });
    work(w).product_of_step = product;
    w.barrier();
    double sum = 0;
    for (const Work& one : work_) sum += one.product_of_step;
    sum = std::abs(sum) * call.lr * call.lr;
    const double scale = kfac.kl_clip > 0 && sum > 0 ? std::min(1.0, std::sqrt(kfac.kl_clip / sum)) : 1;
    each_layer(w, call, [&](std::size_t k) { write(k, static_cast<Scalar>(scale), call.gradient); });
    w.barrier();
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
  struct alignas(64) Work {
    ops::cpu::LapackWork<Scalar> lapack;
    ops::cpu::LapackWork<double> again;
    std::vector<double> doubles;
    std::vector<Scalar> product;
    double product_of_step = 0;
  };

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

  template <class Visit> void each_factor(const Worker& w, const Visit& visit) {
    for (std::size_t i = 0; i < factor_owner_.size(); ++i)
      if (factor_owner_[i] == w.index) visit(factor(places_[i / 2], i % 2 == 1));
  }
  template <class Visit> void each_layer(const Worker& w, const KfacCall<Scalar>& call, const Visit& visit) {
    for (std::size_t k = 0; k < places_.size(); ++k)
      if (layer_owner_[k] == w.index && !frozen(places_[k], call.ranges)) visit(k);
  }
  static bool frozen(const nn::KroneckerPlace& p, std::span<const ParameterGroupRange> ranges) {
    const long end = p.parameter + p.a * row_pitch(p.g);
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const ParameterGroupRange& r) { return r.frozen && r.begin < end && p.parameter < r.end; });
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
  double trace(const Factor& f) const {
    double sum = 0;
    for (long i = 0; i < f.n; ++i) sum += static_cast<double>(factors_[size(f.at + i * f.n + i)]);
    return sum;
  }
  /// What is added to this factor's eigenvalues: with the correction, pi sqrt(damping) or sqrt(damping) / pi.
  double own_damping(const Kfac& kfac, const Factor& f) const {
    if (!kfac.pi_correction) return kfac.damping;
    const nn::KroneckerPlace& p = places_[f.layer];
    const double a = trace(factor(p, false)) / static_cast<double>(p.a), g = trace(factor(p, true)) / static_cast<double>(p.g);
    const double pi = a > 0 && g > 0 ? std::sqrt(a / g) : 1;
    return std::sqrt(kfac.damping) * (f.of_gradients ? 1 / pi : pi);
  }
  void invert(const Kfac& kfac, const Factor& f, Work& work) {
    Scalar* const to = inverses_.data() + f.at;
    std::copy_n(factors_.data() + f.at, f.n * f.n, to);
    if (divide(kfac, f, to, eigenvalues_.data() + f.values, work.lapack)) return;
    // Once more, in double.
    work.doubles.assign(size(f.n * f.n + f.n), 0);
    double *const matrix = work.doubles.data(), *const values = matrix + f.n * f.n;
    std::copy_n(factors_.data() + f.at, f.n * f.n, matrix);
    if (!divide(kfac, f, matrix, values, work.again))
      throw ArgumentError(std::string("Kfac: the factor ") + (f.of_gradients ? "G" : "A") + " of layer " +
                          std::to_string(f.layer) + " (" + names_[f.layer] +
                          ", of those that have factors) has no inverse, in double neither: the loss has "
                          "probably diverged. Take a larger .damping or a smaller rate, or look for NaN in the data");
    std::transform(matrix, matrix + f.n * f.n, to, [](double v) { return static_cast<Scalar>(v); });
    std::transform(values, values + f.n, eigenvalues_.data() + f.values, [](double v) { return static_cast<Scalar>(v); });
  }
  template <class Number>
  bool divide(const Kfac& kfac, const Factor& f, Number* matrix, Number* values, ops::cpu::LapackWork<Number>& lapack) const {
    const double damping = own_damping(kfac, f);
    if (kfac.inverse == KfacInverse::cholesky) {
      for (long i = 0; i < f.n; ++i) matrix[i * f.n + i] += static_cast<Number>(damping);
      return ops::cpu::invert_symmetric(f.n, matrix, lapack);
    }
    if (!ops::cpu::eigen_symmetric(f.n, matrix, values, lapack)) return false;
    for (long i = 0; i < f.n; ++i)
      values[i] = std::max(Number(0), values[i]) + (kfac.pi_correction ? static_cast<Number>(damping) : Number(0));
    return true;
  }
  /// directions_[k] = A^-1 gradient G^-1; returns their product with the gradient.
  double direction(const Kfac& kfac, std::size_t k, const Scalar* gradient, Work& work) {
    using ops::Transpose;
    const nn::KroneckerPlace& p = places_[k];
    const Factor fa = factor(p, false), fg = factor(p, true);
    const long a = p.a, g = p.g, pitch = row_pitch(g);
    const Scalar* const from = gradient + p.parameter;
    Scalar *const to = directions_[k].data(), *const half = work.product.data();
    const auto product = [](Transpose ta, Transpose tb, long m, long n, long inner, const Scalar* x, long x_pitch,
                            const Scalar* y, Scalar* z) {
      ops::gemm<Cpu>(ta, tb, m, n, inner, Scalar(1), x, x_pitch, y, tb == Transpose::yes ? inner : n, Scalar(0), z, n);
    };
    const Scalar *const in_a = inverses_.data() + fa.at, *const in_g = inverses_.data() + fg.at;
    if (kfac.inverse == KfacInverse::cholesky) {
      product(Transpose::no, Transpose::no, a, g, g, from, pitch, in_g, half);
      product(Transpose::no, Transpose::no, a, g, a, in_a, a, half, to);
    } else {  // rows of in_a and in_g are eigenvectors
      product(Transpose::no, Transpose::yes, a, g, g, from, pitch, in_g, half);
      product(Transpose::no, Transpose::no, a, g, a, in_a, a, half, to);
      const Scalar *const va = eigenvalues_.data() + fa.values, *const vg = eigenvalues_.data() + fg.values;
      const Scalar damping = kfac.pi_correction ? Scalar(0) : static_cast<Scalar>(kfac.damping);
      for (long i = 0; i < a; ++i)
        for (long j = 0; j < g; ++j) to[i * g + j] /= va[i] * vg[j] + damping;
      product(Transpose::no, Transpose::no, a, g, g, to, g, in_g, half);
      product(Transpose::yes, Transpose::no, a, g, a, in_a, a, half, to);
    }
    double sum = 0;
    for (long i = 0; i < a; ++i)
      for (long j = 0; j < g; ++j) sum += static_cast<double>(from[i * pitch + j]) * static_cast<double>(to[i * g + j]);
    return sum;
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
  std::vector<int> factor_owner_, layer_owner_;
  std::vector<std::vector<Scalar>> directions_;
  double samples_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::optim
