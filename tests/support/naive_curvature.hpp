// SPDX-License-Identifier: Apache-2.0
// K-FAC's division by its factors as one dense linear system, by Gaussian elimination in plain loops: no eigenvectors, no
// inverses and no LAPACK, so that nothing of what it judges is in it.
#pragma once
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace test {

/// m x = b with m (n, n) in rows; the pivot of a column is its largest element.
inline std::vector<double> solve_dense(std::vector<double> m, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    for (std::size_t j = k; j < n; ++j) std::swap(m[k * n + j], m[pivot * n + j]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double f = m[i * n + k] / m[k * n + k];
      for (std::size_t j = k; j < n; ++j) m[i * n + j] -= f * m[k * n + j];
      b[i] -= f * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= m[k * n + j] * b[j];
    b[k] /= m[k * n + k];
  }
  return b;
}

/// What is added to the diagonals of A and of G, and to that of their Kronecker product.
struct NaiveDamping {
  double of_a = 0, of_g = 0, of_product = 0;
};

/// The x (a, g) with (A + of_a I) x (G + of_g I) + of_product x = gradient; A (a, a), G (g, g).
inline std::vector<double> divide_naively(const NaiveDamping& damping, const std::vector<double>& factor_a,
                                          const std::vector<double>& factor_g, const std::vector<double>& gradient) {
  const auto rows = [](const std::vector<double>& f) { return static_cast<std::size_t>(std::lround(std::sqrt(f.size()))); };
  const std::size_t a = rows(factor_a), g = rows(factor_g), n = a * g;
  std::vector<double> m(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t ia = i / g, ig = i % g, ja = j / g, jg = j % g;
      m[i * n + j] =
          (factor_a[ia * a + ja] + (ia == ja ? damping.of_a : 0)) * (factor_g[jg * g + ig] + (ig == jg ? damping.of_g : 0)) +
          (i == j ? damping.of_product : 0);
    }
  return solve_dense(std::move(m), gradient);
}

}  // namespace test
