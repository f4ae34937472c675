// SPDX-License-Identifier: Apache-2.0
// Which ranks invert and which precondition what under K-FAC: the grid of KAISA (Pauloski et al., "KAISA: An Adaptive
// Second-Order Optimizer Framework for Deep Neural Networks", SC 2021, arXiv:2107.01739, section 3.1), a function of shapes and
// ranks, and what a rank sends by it.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "curvature_block.hpp"
#include "share_by_cost.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Ranks as a grid of `workers` rows. The ranks of a column are the gradient workers of the same layers: each has the inverses of
/// these. The ranks of a row get each other's preconditioned gradients. One column: every rank works on every layer (KAISA's
/// COMM-OPT); one row: each layer has one worker (MEM-OPT); else HYBRID-OPT.
struct WorkerGrid {
  int ranks = 1, workers = 1;  ///< workers divides ranks
  constexpr int columns() const { return ranks / workers; }
  constexpr int column(int rank) const { return rank % columns(); }
  constexpr int row(int rank) const { return rank / columns(); }
};

/// This rank, among those that have one gradient.
struct RankInGrid {
  int rank = 0;
  WorkerGrid grid{};
};

/// The grid of these ranks whose layers have as many workers as divide the ranks and are at most numerator / denominator of them;
/// at least one.
constexpr WorkerGrid worker_grid(int ranks, int numerator, int denominator) {
  int workers = std::max(1, static_cast<int>(static_cast<long>(ranks) * numerator / denominator));
  while (ranks % workers != 0) --workers;
  return {ranks, workers};
}

/// Who does what.
struct CurvatureShares {
  WorkerGrid grid;
  std::vector<int> column;        ///< whose ranks precondition this layer
  std::vector<int> inverse_rank;  ///< the rank that inverts this factor: of each layer A before G
};

/// Layers go to columns by what inverting both factors costs, n^3 each where inverses are whole, and factors to the ranks of the
/// column.
constexpr CurvatureShares share_curvature(std::span<const FactorSizes> layers, WorkerGrid grid, InverseForm form = {}) {
  std::vector<double> of_factors, of_layers;
  for (const FactorSizes& l : layers) {
    for (const bool of_gradients : {false, true}) of_factors.push_back(form.cost(l, of_gradients));
    of_layers.push_back(form.cost(l, false) + form.cost(l, true));
  }
  CurvatureShares shares{grid, share_by_cost({of_layers.data(), of_layers.size()}, grid.columns()),
                         std::vector<int>(of_factors.size())};
  for (int c = 0; c < grid.columns(); ++c) {
    std::vector<double> own;
    for (std::size_t i = 0; i < of_factors.size(); ++i)
      if (shares.column[i / 2] == c) own.push_back(of_factors[i]);
    const std::vector<int> row = share_by_cost({own.data(), own.size()}, grid.workers);
    for (std::size_t i = 0, k = 0; i < of_factors.size(); ++i)
      if (shares.column[i / 2] == c) shares.inverse_rank[i] = row[k++] * grid.columns() + c;
  }
  return shares;
}

/// Values that this rank gives to the other ranks of its column where inverses are updated: those that it has made.
constexpr long inverse_values(const CurvatureShares& shares, std::span<const FactorSizes> layers, int rank, InverseForm form) {
  long values = 0;
  for (std::size_t i = 0; i < shares.inverse_rank.size(); ++i)
    if (shares.inverse_rank[i] == rank && shares.grid.workers > 1) values += form.values(layers[i / 2], i % 2 == 1);
  return values;
}
/// Values that this rank gives to the other ranks of its row in each step: the preconditioned gradients of its column.
constexpr long direction_values(const CurvatureShares& shares, std::span<const FactorSizes> layers, int rank) {
  long values = 0;
  for (std::size_t k = 0; k < layers.size(); ++k)
    if (shares.grid.columns() > 1 && shares.column[k] == shares.grid.column(rank)) values += layers[k].a * layers[k].g;
  return values;
}

}  // namespace skein::inline SKEIN_ABI::plan
