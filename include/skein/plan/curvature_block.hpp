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
  /// What dividing a gradient by their inverses costs.
  constexpr double division_cost() const {
    return static_cast<double>(a) * static_cast<double>(g) * static_cast<double>(unit_wise ? a : a + g);
  }
};

/// What second-order methods keep of the inverses of such factors.
struct InverseForm {
  bool eigenvalues = false;  ///< n values more of each factor of n rows
  int rank = 0;              ///< so many eigenvectors of factors of more than four times as many rows; 0: whole inverses

  /// Eigenvectors that stand for the inverse of this factor; 0: it is whole.
  constexpr long eigenvectors(const FactorSizes& of, bool of_gradients) const {
    return rank > 0 && !of.unit_wise && of.factor(of_gradients).rows > 4L * rank ? rank : 0;
  }
  constexpr bool whole(const FactorSizes& of) const { return eigenvectors(of, false) + eigenvectors(of, true) == 0; }
  /// Values of the inverse, and all that are kept.
  constexpr long matrix_values(const FactorSizes& of, bool of_gradients) const {
    const long n = of.factor(of_gradients).rows, r = eigenvectors(of, of_gradients);
    return r > 0 ? r * n + 1 : of.factor(of_gradients).values();
  }
  constexpr long values(const FactorSizes& of, bool of_gradients) const {
    return matrix_values(of, of_gradients) + (eigenvalues && !of.unit_wise ? of.factor(of_gradients).rows : 0);
  }
  /// What inverting costs, in the unit of FactorSizes: three products of the eigenvectors and the factor.
  constexpr double cost(const FactorSizes& of, bool of_gradients) const {
    const double n = static_cast<double>(of.factor(of_gradients).rows);
    const long r = eigenvectors(of, of_gradients);
    return r > 0 ? 3 * n * n * static_cast<double>(r) : of.factor(of_gradients).cost();
  }
  /// What dividing a gradient costs.
  constexpr double division_cost(const FactorSizes& of) const {
    if (whole(of)) return of.division_cost();
    const auto multiplies = [&](bool of_gradients) {
      const long r = eigenvectors(of, of_gradients);
      return static_cast<double>(r > 0 ? 2 * r : of.factor(of_gradients).rows);
    };
    return static_cast<double>(of.a) * static_cast<double>(of.g) * (multiplies(false) + multiplies(true));
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
