// SPDX-License-Identifier: Apache-2.0
// Where Kfac has what: the factors of all layers, on every rank; what divides by those of a rank's own layers; the preconditioned
// gradients. What ranks send each other lies side by side, in the order of the ranks that make it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "../../nn/kronecker.hpp"
#include "../../plan/curvature_shares.hpp"
#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// A factor of a layer: A, of its inputs, or G, of its outputs' gradients; unit-wise, the blocks of its scale and shift, and
/// none.
struct KfacFactor {
  std::size_t layer = 0;
  bool of_gradients = false, unit_wise = false;
  long n = 0, count = 1;  ///< rows; how many such matrices
  long at = 0;            ///< (count, n, n), among all factors
  long values = 0;        ///< (n), among the eigenvalues of all factors, as files have them
  long eigenvectors = 0;  ///< that stand for the inverse; 0: it is whole
  long inverse = 0;       ///< among the inverses of its column of ranks: matrix_values, and the eigenvalues where there are such
  long saved = 0;         ///< likewise among the inverses of all factors, without eigenvalues, as files have them
  long matrix_values = 0;
  int rank = 0;  ///< who makes the inverse

  long size() const { return count * n * n; }
  /// How many eigenvalues an eigendecomposition of the factor has.
  long eigenvalues() const { return unit_wise ? 0 : n; }
};

/// What one worker does at a time of the division of a layer's gradient: its columns [begin, end).
struct KfacPiece {
  std::size_t layer = 0;
  long begin = 0, end = 0;
};

/// The places of everything that a KfacState has.
class KfacLayout {
 public:
  KfacLayout(std::span<const plan::LayerNode> nodes, plan::RankInGrid ranks, plan::InverseForm form, bool unit_wise)
      : ranks_(ranks), form_(form) {
    for (const plan::LayerNode& node : nodes)
      for (const plan::CurvatureBlock& block : node.curvature)
        if (block.a > 0 && (unit_wise || !block.unit_wise)) add(node, block);
    shares_ = plan::share_curvature(sizes_, ranks.grid, form);
    list_factors();
    list_pieces();
    for (int c = 0; c < ranks.grid.columns(); ++c) {
      column_values_.push_back(0);
      for (int row = 0; row < ranks.grid.workers; ++row) place_inverses(row * ranks.grid.columns() + c, column_values_.back());
      place_directions(c);
    }
  }

  std::size_t layers() const { return places_.size(); }
  const nn::KroneckerPlace& place(std::size_t layer) const { return places_[layer]; }
  std::span<const nn::KroneckerPlace> places() const { return places_; }
  const std::string& name(std::size_t layer) const { return names_[layer]; }
  /// "the factor A of layer 0 (Linear<3>, of those that have factors)".
  std::string text(const KfacFactor& f) const {
    const char* const which = f.unit_wise ? "unit-wise factor" : f.of_gradients ? "factor G" : "factor A";
    return skein::text("the {} of layer {} ({}, of those that have factors)", which, f.layer, name(f.layer));
  }
  /// Where the layer's parameters end in the arena, those without factors too.
  long end(std::size_t layer) const { return ends_[layer]; }
  /// Factor i is one of layer i / 2 (a layer with two blocks counts as two), A before G.
  const KfacFactor& factor(std::size_t i) const { return factors_[i]; }
  std::size_t factor_count() const { return factors_.size(); }
  /// Has this rank the inverses of a layer, and preconditions its gradient?
  bool holds(std::size_t layer) const { return shares_.column[layer] == ranks_.grid.column(ranks_.rank); }
  /// Where a layer's preconditioned gradient (a, g), dense, lies among those of all.
  long direction(std::size_t layer) const { return directions_[layer]; }

  /// The pieces of all layers. They do not depend on the number of workers, so that results do not either.
  std::span<const KfacPiece> pieces() const { return pieces_; }

  const plan::RankInGrid& ranks() const { return ranks_; }
  const plan::CurvatureShares& shares() const { return shares_; }
  std::span<const plan::FactorSizes> sizes() const { return sizes_; }
  plan::InverseForm form() const { return form_; }
  /// Values of all factors, of all their inverses as files have them, of the inverses of this rank's column, of all eigenvalues,
  /// of all preconditioned gradients.
  long factor_values() const { return size_; }
  long saved_inverse_values() const { return saved_size_; }
  long inverse_values() const { return static_cast<long>(column_values_[column()]); }
  long eigenvalues() const { return eigenvalues_; }
  long direction_values() const { return direction_size_; }
  /// Numbers of values: of the inverses of this column, by the rank that makes them; of the preconditioned gradients, by
  /// column; of the inverses, by column. In the order of a row, or column, of ranks.
  std::span<const std::size_t> inverse_counts() const { return inverse_counts_; }
  std::span<const std::size_t> direction_counts() const { return direction_counts_; }
  std::span<const std::size_t> column_values() const { return column_values_; }
  /// Where those begin that this rank gives.
  std::size_t own_inverses() const { return before(inverse_counts_, ranks_.grid.row(ranks_.rank)); }
  std::size_t own_directions() const { return before(direction_counts_, ranks_.grid.column(ranks_.rank)); }
  /// Where the inverse of a factor lies, had a rank those of all columns, one behind the other.
  std::size_t among_all(const KfacFactor& f) const {
    return before(column_values_, shares_.column[f.layer]) + static_cast<std::size_t>(f.inverse);
  }

 private:
  void add(const plan::LayerNode& node, const plan::CurvatureBlock& block) {
    const long begin = node.parameter + block.begin;
    const long last = block.last_row < 0 ? begin + (block.a - 1) * row_pitch(block.g) : node.parameter + block.last_row;
    places_.push_back({begin, last, block.a, block.g, size_, block.unit_wise});
    names_.emplace_back(node.kind);
    ends_.push_back(node.parameter + node.parameters);
    sizes_.push_back(block.sizes());
    size_ += block.sizes().values();
  }
  std::size_t column() const { return static_cast<std::size_t>(ranks_.grid.column(ranks_.rank)); }
  static std::size_t before(std::span<const std::size_t> counts, int k) {
    return std::accumulate(counts.begin(), counts.begin() + k, std::size_t{0});
  }
  void list_factors() {
    for (std::size_t i = 0; i < 2 * places_.size(); ++i) {
      const nn::KroneckerPlace& p = places_[i / 2];
      const plan::SymmetricMatrices matrices = sizes_[i / 2].factor(i % 2 == 1);
      KfacFactor f{.layer = i / 2, .of_gradients = i % 2 == 1, .unit_wise = p.unit_wise, .n = matrices.rows};
      f.count = matrices.count;
      f.at = p.sums + (f.of_gradients ? sizes_[i / 2].factor(false).values() : 0);
      f.values = eigenvalues_;
      f.eigenvectors = form_.eigenvectors(sizes_[i / 2], f.of_gradients);
      f.matrix_values = form_.matrix_values(sizes_[i / 2], f.of_gradients);
      f.saved = saved_size_;
      f.rank = shares_.inverse_rank[i];
      eigenvalues_ += f.eigenvalues();
      saved_size_ += f.matrix_values;
      factors_.push_back(f);
    }
  }
  /// Divisions by whole inverses are by columns, at least 32 and at most an eighth of a layer. Those by eigenvectors, whose
  /// products mix the columns, and by blocks are whole.
  void list_pieces() {
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const bool apart = !form_.eigenvalues && !places_[k].unit_wise && form_.whole(sizes_[k]);
      const long g = places_[k].g, width = apart ? std::max(32L, whole_line(g / 8)) : g;
      for (long begin = 0; begin < g; begin += width) pieces_.push_back({k, begin, std::min(g, begin + width)});
    }
  }
  /// Those that `rank` makes, from `at` on.
  void place_inverses(int rank, std::size_t& at) {
    const std::size_t begin = at;
    for (KfacFactor& f : factors_) {
      if (f.rank != rank) continue;
      f.inverse = static_cast<long>(at);
      at += static_cast<std::size_t>(form_.values(sizes_[f.layer], f.of_gradients));
    }
    if (ranks_.grid.column(rank) == ranks_.grid.column(ranks_.rank)) inverse_counts_.push_back(at - begin);
  }
  void place_directions(int column) {
    const long begin = direction_size_;
    directions_.resize(layers());
    for (std::size_t k = 0; k < layers(); ++k) {
      if (shares_.column[k] != column) continue;
      directions_[k] = direction_size_;
      direction_size_ += places_[k].a * places_[k].g;
    }
    direction_counts_.push_back(static_cast<std::size_t>(direction_size_ - begin));
  }

  plan::RankInGrid ranks_;
  plan::InverseForm form_;
  plan::CurvatureShares shares_;
  std::vector<nn::KroneckerPlace> places_;
  std::vector<std::string> names_;
  std::vector<plan::FactorSizes> sizes_;
  std::vector<KfacFactor> factors_;
  std::vector<KfacPiece> pieces_;
  std::vector<long> directions_, ends_;
  std::vector<std::size_t> inverse_counts_, direction_counts_, column_values_;
  long size_ = 0, saved_size_ = 0, eigenvalues_ = 0, direction_size_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::optim
