// SPDX-License-Identifier: Apache-2.0
// What Kfac remembers of a training: the layers' factors and what divides by them. All ranks have the factors. Inverses are
// shared out among the gradient workers of a layer (plan/curvature_shares.hpp), and all work of a rank among its workers, factor
// by factor and layer by layer. Pauloski et al., "KAISA", SC 2021, arXiv:2107.01739.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/workers.hpp"
#include "../groups.hpp"
#include "kfac_factors.hpp"
#include "kfac_inverse.hpp"
#include "kfac_layout.hpp"
#include "kfac_options.hpp"
#include "kfac_saved.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// The other ranks of a training that has one.
struct NoOtherRanks {
  template <class Span> static void sum(Span) {}
  template <class Span> static void gather_workers(Span, std::span<const std::size_t>, Span) {}
  template <class Span> static void gather_receivers(Span, std::span<const std::size_t>, Span) {}
};

/// Factors, what divides by them, and the workers' sums. All workers call the same in the same order, and so do all ranks.
template <class Scalar> class KfacState {
  static_assert(SKEIN_WITH_LAPACK || sizeof(Scalar) == 0,
                "Kfac needs LAPACK, and this program is built without it: link skein::lapack (apt install libopenblas-dev, or "
                "liblapack-dev, and configure again)");

 public:
  using value_type = Scalar;
  using Call = KfacCall<Scalar>;
  using Saved = KfacSaved<Scalar>;

  /// Factors begin as the identity.
  explicit KfacState(std::span<const plan::LayerNode> layers, const Kfac& kfac = {}, plan::RankInGrid ranks = {})
      : layout_(std::make_unique<KfacLayout>(layers, ranks, kfac.inverse_form(), kfac.unit_wise)), factors_(*layout_),
        kind_(kfac.inverse_kind()), inverses_(size(layout_->inverse_values()), Scalar(0)),
        directions_(size(layout_->direction_values()), Scalar(0)), products_(layout_->pieces().size(), 0) {}

  /// The executor's workers collect for this; after each new executor.
  template <class Executor> void attach(Executor& executor) {
    factors_.attach(executor);
    const int n = executor.workers().size();
    std::vector<double> of_factors, of_pieces;
    std::size_t largest = 0;
    const plan::InverseForm form = layout_->form();
    for (const plan::FactorSizes& s : layout_->sizes()) {
      for (const bool of_gradients : {false, true}) of_factors.push_back(form.cost(s, of_gradients));
      largest = std::max(largest, size(s.a * s.g));
    }
    for (const KfacPiece& p : layout_->pieces()) {
      const plan::FactorSizes& s = layout_->sizes()[p.layer];
      of_pieces.push_back(form.division_cost(s) * static_cast<double>(p.end - p.begin) / static_cast<double>(s.g));
    }
    piece_owner_ = plan::share_by_cost(of_pieces, n);
    inverse_owner_ = share(of_factors, n, [&](std::size_t i) { return layout_->factor(i).rank == layout_->ranks().rank; });
    direction_owner_ = share(of_pieces, n, [&](std::size_t i) { return layout_->holds(layout_->pieces()[i].layer); });
    work_.assign(size(n), {});
    for (Work& w : work_) w.product.assign(largest, Scalar(0));
  }

  /// Every worker, before the forward pass of a step, or of one of an accumulation's batches, of so many samples of this rank.
  void begin_pass(const Kfac& kfac, const Worker& w, std::int64_t step, long samples, bool accumulates) {
    factors_.begin_pass(kfac, w, step, samples, accumulates);
  }

  /// Every worker, after all have ended backward: the gradient in call.gradient becomes the preconditioned one. Over several
  /// ranks the gradient is that of all, and so are the factors. `ranks` has sum(span), over all ranks, and gather_workers(own,
  /// counts, whole) and gather_receivers(...), in this rank's column and row of the grid.
  template <class Ranks = NoOtherRanks>
  void precondition(const Kfac& kfac, const Call& call, const Worker& w, const Ranks& ranks = {}) {
    if (kfac.updates_factors(call.step)) factors_.update(kfac, call, w, ranks);
    if (kfac.updates_inverses(call.step) || held_ != kind_) update_inverses(kfac, w, ranks);
    each_piece(direction_owner_, w, call, [&](std::size_t i) { direction(kfac, piece(i), call.gradient, work(w)); });
    share_directions(w, ranks);
    double scale = 1;
    if (kfac.kl_clip > 0) scale = clip(kfac, call, w);
    else w.barrier();  // who is early would write over what others still divide
    each_piece(piece_owner_, w, call, [&](std::size_t i) { write(piece(i), static_cast<Scalar>(scale), call.gradient); });
    if (w.index == 0) held_ = kind_;  // all have asked for it before they divided
    w.barrier();
  }

  /// What of an update's sums travels in which piece, and where: see KfacFactors.
  std::span<const KfacBucket> factor_buckets() const { return factors_.buckets(); }
  std::span<Scalar> packed_sums() { return factors_.packed(); }
  void pack(std::size_t bucket) { factors_.pack(bucket); }

  /// Values that a rank gives where factors are updated.
  long packed_values() const { return factors_.packed_values(); }
  /// Values that this rank gives where inverses are updated, and in each step.
  long inverse_values() const {
    return plan::inverse_values(layout_->shares(), layout_->sizes(), layout_->ranks().rank, layout_->form());
  }
  long direction_values() const { return plan::direction_values(layout_->shares(), layout_->sizes(), layout_->ranks().rank); }
  /// Values of the inverses that this rank keeps.
  long kept_inverses() const { return layout_->inverse_values(); }

  /// Layers with factors, and their factors: (n, n), A before G; of a normalisation (channels, n, n), and nothing. Gru counts as
  /// two layers: of its input, and of its state.
  std::size_t layers() const { return layout_->layers(); }
  std::span<const Scalar> factor_a(std::size_t layer) const { return factors_.view(layout_->factor(2 * layer)); }
  std::span<const Scalar> factor_g(std::size_t layer) const { return factors_.view(layout_->factor(2 * layer + 1)); }

  /// Which factor is not finite, in a sentence without its end; "" where all are.
  std::string not_finite() const { return factors_.not_finite(); }
  /// All ranks, before rank 0 asks for saved(): it gets the inverses of all columns, until drop().
  template <class Ranks> void gather(const Ranks& ranks) {
    const plan::RankInGrid& here = layout_->ranks();
    if (here.grid.columns() == 1 || here.grid.row(here.rank) != 0) return;
    const auto counts = layout_->column_values();
    gathered_.assign(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), Scalar(0));
    ranks.gather_receivers(std::span<Scalar>(inverses_), counts, std::span<Scalar>(gathered_));
  }
  void drop() { gathered_ = {}; }
  Saved saved() const {
    Saved s{factors_.values(), std::vector<Scalar>(size(layout_->saved_inverse_values())),
            std::vector<Scalar>(size(layout_->eigenvalues())), held_};
    each_kept([&](const KfacFactor& f, std::size_t at) {
      const Scalar* const from = gathered_.empty() ? inverses_.data() + at : gathered_.data() + at;
      std::copy_n(from, f.matrix_values, s.inverses.data() + f.saved);
      if (layout_->form().eigenvalues) std::copy_n(from + f.matrix_values, f.eigenvalues(), s.eigenvalues.data() + f.values);
    });
    return s;
  }
  /// Inverses of another kind are not used: the next step makes them anew of the factors.
  void take(Saved&& saved) {
    drop();
    held_ = saved.kind;
    factors_.set_values(std::move(saved.factors));
    each_kept([&](const KfacFactor& f, std::size_t at) {
      std::copy_n(saved.inverses.data() + f.saved, f.matrix_values, inverses_.data() + at);
      if (layout_->form().eigenvalues)
        std::copy_n(saved.eigenvalues.data() + f.values, f.eigenvalues(), inverses_.data() + at + size(f.matrix_values));
    });
  }

 private:
  using Work = KfacWork<Scalar>;
  static constexpr int nobody = -1;  ///< of this rank's workers

  static std::size_t size(long n) { return static_cast<std::size_t>(n); }
  Work& work(const Worker& w) { return work_[size(w.index)]; }
  /// Who of this rank's workers does which piece of what is its own.
  template <class Own> static std::vector<int> share(std::vector<double> costs, int workers, const Own& own) {
    for (std::size_t i = 0; i < costs.size(); ++i)
      if (!own(i)) costs[i] = 0;
    std::vector<int> owner = plan::share_by_cost(costs, workers);
    for (std::size_t i = 0; i < costs.size(); ++i)
      if (!own(i)) owner[i] = nobody;
    return owner;
  }
  FactorInverse<Scalar> inverse(const KfacFactor& f) const {
    const Scalar* const at = inverses_.data() + f.inverse;
    return {f.n, at, at + f.matrix_values, f.eigenvectors};
  }

  template <class Visit> void each_factor(const std::vector<int>& owner, const Worker& w, const Visit& visit) const {
    for (std::size_t i = 0; i < owner.size(); ++i)
      if (owner[i] == w.index) visit(layout_->factor(i));
  }
  const KfacPiece& piece(std::size_t i) const { return layout_->pieces()[i]; }
  /// Calls visit(i) for each piece i of this worker whose layer has no frozen parameter.
  template <class Visit>
  void each_piece(const std::vector<int>& owner, const Worker& w, const Call& call, const Visit& visit) const {
    for (std::size_t i = 0; i < owner.size(); ++i)
      if (owner[i] == w.index && !frozen(layout_->place(piece(i).layer), call.ranges)) visit(i);
  }
  /// visit(factor, where its inverse is) for those of this rank, or of all while they are gathered.
  template <class Visit> void each_kept(const Visit& visit) const {
    for (std::size_t i = 0; i < layout_->factor_count(); ++i) {
      const KfacFactor& f = layout_->factor(i);
      if (!gathered_.empty()) visit(f, layout_->among_all(f));
      else if (layout_->holds(f.layer)) visit(f, size(f.inverse));
    }
  }
  static bool frozen(const nn::KroneckerPlace& p, std::span<const ParameterGroupRange> ranges) {
    const auto covers = [](const ParameterGroupRange& r, long begin, long end) { return r.begin < end && begin < r.end; };
    return std::any_of(ranges.begin(), ranges.end(), [&](const ParameterGroupRange& r) {
      return r.frozen && (covers(r, p.parameter, p.parameter + (p.a - 1) * row_pitch(p.g)) ||
                          covers(r, p.last_row, p.last_row + row_pitch(p.g)));
    });
  }

  /// Each inverse is made by one rank, which gives it to the others of its column.
  template <class Ranks> void update_inverses(const Kfac& kfac, const Worker& w, const Ranks& ranks) {
    each_factor(inverse_owner_, w, [&](const KfacFactor& f) { invert(kfac, f, work(w)); });
    w.barrier();
    if (layout_->ranks().grid.workers == 1) return;
    if (w.index == 0)
      gather_own(layout_->own_inverses(), layout_->inverse_counts(), layout_->ranks().grid.row(layout_->ranks().rank), inverses_,
                 [&](auto... spans) { ranks.gather_workers(spans...); });
    w.barrier();
  }
  /// Each row of ranks has the preconditioned gradients of all layers.
  template <class Ranks> void share_directions(const Worker& w, const Ranks& ranks) {
    const plan::RankInGrid& here = layout_->ranks();
    if (here.grid.columns() == 1) return;  // piece_owner_ is direction_owner_
    w.barrier();
    if (w.index == 0)
      gather_own(layout_->own_directions(), layout_->direction_counts(), here.grid.column(here.rank), directions_,
                 [&](auto... spans) { ranks.gather_receivers(spans...); });
    w.barrier();
  }
  template <class Gather> static void gather_own(std::size_t begin, std::span<const std::size_t> counts, int place,
                                                 std::vector<Scalar>& whole, const Gather& gather) {
    gather(std::span(whole).subspan(begin, counts[size(place)]), counts, std::span(whole));
  }
  /// What is added to this factor's eigenvalues: pi sqrt(damping) or sqrt(damping) / pi; 0 where their products are damped.
  double own_damping(const Kfac& kfac, const KfacFactor& f) const {
    if (!kfac.pi_correction) return kfac.inverse == KfacInverse::eigen ? 0 : kfac.damping;
    const nn::KroneckerPlace& p = layout_->place(f.layer);
    const double a = mean_of_diagonal(p.a, factor_a(f.layer)), g = mean_of_diagonal(p.g, factor_g(f.layer));
    const double pi = a > 0 && g > 0 ? std::sqrt(a / g) : 1;
    return std::sqrt(kfac.damping) * (f.of_gradients ? 1 / pi : pi);
  }
  void invert(const Kfac& kfac, const KfacFactor& f, Work& work) {
    const Scalar* const from = factors_.data(f);
    Scalar* const to = inverses_.data() + f.inverse;
    const double damping = f.unit_wise ? kfac.damping : own_damping(kfac, f);
    const bool found = f.unit_wise          ? invert_blocks(f.count, f.n, damping, from, to)
                       : f.eigenvectors > 0 ? invert_by_eigenvectors(f.eigenvectors, f.n, damping, from, to, work)
                                            : invert_factor(kfac.inverse, f.n, damping, from, to, to + f.matrix_values, work);
    if (!found)
      throw ArgumentError("Kfac: " + layout_->text(f) +
                          " has no inverse: the loss has probably diverged. Take a larger .damping or a "
                          "smaller rate, or look for NaN in the data");
  }
  /// The layer's direction is A^-1 gradient G^-1.
  void direction(const Kfac& kfac, const KfacPiece& piece, const Scalar* gradient, Work& work) {
    const nn::KroneckerPlace& p = layout_->place(piece.layer);
    const FactorInverse<Scalar> of_a = inverse(layout_->factor(2 * piece.layer));
    Scalar* const to = directions_.data() + layout_->direction(piece.layer);
    if (p.unit_wise) return divide_by_blocks(p.a, p.g, of_a.matrix, gradient + p.parameter, to);
    const FactorInverse<Scalar> of_g = inverse(layout_->factor(2 * piece.layer + 1));
    const Scalar *const first = gradient + p.parameter, *const last = gradient + p.last_row;
    if (kfac.inverse == KfacInverse::cholesky)
      return divide_by_inverses(of_a, of_g, first, last, piece.begin, piece.end, work, to);
    divide_by_factors(kfac.inverse, kfac.pi_correction ? 0 : kfac.damping, of_a, of_g, first, last, work, to);
  }
  /// What the direction is multiplied by, so that it is as long as kl_clip allows.
  double clip(const Kfac& kfac, const Call& call, const Worker& w) {
    each_piece(piece_owner_, w, call, [&](std::size_t i) { products_[i] = product(piece(i), call.gradient); });
    w.barrier();
    double sum = 0;  // by pieces, so that it does not depend on the number of workers, in which ranks may differ
    for (std::size_t i = 0; i < products_.size(); ++i)
      if (!frozen(layout_->place(piece(i).layer), call.ranges)) sum += products_[i];
    sum = std::abs(sum) * call.lr * call.lr;
    return sum > 0 ? std::min(1.0, std::sqrt(kfac.kl_clip / sum)) : 1;
  }
  /// The sum of the products of the gradient and its direction.
  double product(const KfacPiece& piece, const Scalar* gradient) const {
    const nn::KroneckerPlace& p = layout_->place(piece.layer);
    const Scalar* from = directions_.data() + layout_->direction(piece.layer) + piece.begin;
    double sum = 0;
    for (long i = 0; i < p.a; ++i, from += p.g)
      sum += sum_of_products(piece.end - piece.begin, gradient + p.row(i) + piece.begin, from);
    return sum;
  }
  void write(const KfacPiece& piece, Scalar scale, Scalar* gradient) const {
    const nn::KroneckerPlace& p = layout_->place(piece.layer);
    const Scalar* from = directions_.data() + layout_->direction(piece.layer);
    for (long i = 0; i < p.a; ++i, from += p.g) {
      Scalar* const row = gradient + p.row(i);
      for (long j = piece.begin; j < piece.end; ++j) row[j] = scale * from[j];
    }
  }

  std::unique_ptr<const KfacLayout> layout_;  ///< factors_ know it too
  KfacFactors<Scalar> factors_;
  std::uint64_t kind_;          ///< of the inverses that this makes
  std::uint64_t held_ = kind_;  ///< of those that it has, which a file may have brought: no step divides by another kind
  std::vector<Scalar> inverses_, gathered_;
  std::vector<Work> work_;
  std::vector<int> inverse_owner_, piece_owner_, direction_owner_;  ///< workers of this rank
  std::vector<Scalar> directions_;
  std::vector<double> products_;  ///< of a piece of the direction with its gradient
};

}  // namespace skein::inline SKEIN_ABI::optim
