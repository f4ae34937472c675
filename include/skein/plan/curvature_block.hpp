// SPDX-License-Identifier: Apache-2.0
// The parts of a layer's weights whose curvature second-order methods take by itself, and the sizes of what they keep of it.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Symmetric matrices of the same size, one behind the other.
struct SymmetricMatrices {
  long count = 0, rows = 0;
  constexpr long values() const { return count * rows * rows; }
  constexpr long triangles() const { return count * rows * (rows + 1) / 2; }
  /// What inverting them costs.
  constexpr double cost() const {
    const double n = static_cast<double>(rows);
    return static_cast<double>(count) * n * n * n;
  }
};

/// The curvature of a matrix of weights (a, g): by two Kronecker factors, (a, a) of inputs and (g, g) of output gradients; or
/// unit-wise, by g matrices (a, a).
struct FactorSizes {
  long a = 0, g = 0;
  bool unit_wise = false;

  /// The first factor, or the second, which is empty where the block is unit-wise.
  constexpr SymmetricMatrices factor(bool of_gradients) const {
    if (unit_wise) return of_gradients ? SymmetricMatrices{} : SymmetricMatrices{g, a};
    return {1, of_gradients ? g : a};
  }
  constexpr long values() const { return factor(false).values() + factor(true).values(); }
  constexpr long triangles() const { return factor(false).triangles() + factor(true).triangles(); }
  /// What inverting them costs, and what dividing a gradient by them.
  constexpr double inversion_cost() const { return factor(false).cost() + factor(true).cost(); }
  constexpr double division_cost() const {
    return static_cast<double>(a) * static_cast<double>(g) * static_cast<double>(unit_wise ? a : a + g);
  }
};

/// Where such a matrix lies among a layer's stored parameters.
struct CurvatureBlock {
  long a = 0, g = 0;  ///< 0: there is none
  bool unit_wise = false;
  long begin = 0;      ///< of its first row; rows are row_pitch(g) apart
  long last_row = -1;  ///< of a last row, a bias, that is not behind the others
  constexpr FactorSizes sizes() const { return {a, g, unit_wise}; }
};

}  // namespace skein::inline SKEIN_ABI::plan
