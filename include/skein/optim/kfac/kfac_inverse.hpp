// SPDX-License-Identifier: Apache-2.0
// What Kfac computes with one layer's factors: their inverses or eigenvectors, and the gradient divided by both.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "../../core/random.hpp"
#include "../../core/shape.hpp"
#include "../../ops/cpu/lapack.hpp"
#include "../../ops/gemm.hpp"
#include "../../ops/symmetric_inverse.hpp"
#include "../optimizer.hpp"
#include "kfac_options.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// The trace of a matrix (n, n), by n.
template <class Scalar> double mean_of_diagonal(long n, std::span<const Scalar> matrix) {
  double sum = 0;
  for (long i = 0; i < n; ++i) sum += static_cast<double>(matrix[static_cast<std::size_t>(i * (n + 1))]);
  return sum / static_cast<double>(n);
}

/// The dot product of n pairs in double precision, by eight sums to which the processor adds at a time.
template <class Scalar> double sum_of_products(long n, const Scalar* x, const Scalar* y) {
  double sums[8] = {};
  const auto add = [&](long at, long k) { sums[k] += static_cast<double>(x[at + k]) * static_cast<double>(y[at + k]); };
  long i = 0;
  for (; i + 8 <= n; i += 8)
    for (long k = 0; k < 8; ++k) add(i, k);
  for (long k = 0; k < n - i; ++k) add(i, k);
  return std::accumulate(sums, sums + 8, 0.0);
}

/// Memory of one worker.
template <class Scalar> struct alignas(64) KfacWork {
  ops::cpu::LapackWork<Scalar> lapack;
  ops::cpu::LapackWork<double> again;
  std::vector<double> doubles;
  std::vector<Scalar> product;  ///< of the size of the largest gradient of a layer
  std::vector<Scalar> small;    ///< of factors that eigenvectors stand for
};

namespace detail {
/// The matrix, a factor of n rows, becomes its inverse, or its rows the eigenvectors of `values`; false where LAPACK finds none.
template <class Number> bool divide_factor(KfacInverse how, long n, double damping, Number* matrix, Number* values,
                                           ops::cpu::LapackWork<Number>& lapack) {
  if (how == KfacInverse::cholesky) {
    for (long i = 0; i < n; ++i) matrix[i * n + i] += epsilon_of<Number>(damping);
    return ops::invert_symmetric(n, matrix, lapack);
  }
  if (!ops::cpu::eigen_symmetric(n, matrix, values, lapack)) return false;
  for (long i = 0; i < n; ++i) values[i] = std::max(Number(0), values[i]) + epsilon_of<Number>(damping);
  return true;
}
}  // namespace detail

/// `inverse` (n, n) becomes what divides by the factor (n, n), and `values` its eigenvalues where Kfac takes those. In double
/// where the first try fails; false where that fails too.
template <class Scalar> bool invert_factor(KfacInverse how, long n, double damping, const Scalar* factor, Scalar* inverse,
                                           Scalar* values, KfacWork<Scalar>& work) {
  std::copy_n(factor, n * n, inverse);
  if (detail::divide_factor(how, n, damping, inverse, values, work.lapack)) return true;
  work.doubles.assign(static_cast<std::size_t>(n * n + n), 0);
  double *const matrix = work.doubles.data(), *const eigenvalues = matrix + n * n;
  std::copy_n(factor, n * n, matrix);
  if (!detail::divide_factor(how, n, damping, matrix, eigenvalues, work.again)) return false;
  std::transform(matrix, matrix + n * n, inverse, [](double v) { return static_cast<Scalar>(v); });
  if (how == KfacInverse::eigen)
    std::transform(eigenvalues, eigenvalues + n, values, [](double v) { return static_cast<Scalar>(v); });
  return true;
}

/// `inverse` (count, n, n) becomes the inverses of the blocks (count, n, n) of second moments, n at most 2, with the damping
/// added to their diagonals. What is beside the diagonal is at most what two moments allow: rounding may have made it larger.
/// False where a block is not finite, or has a negative diagonal.
template <class Scalar> bool invert_blocks(long count, long n, double damping, const Scalar* blocks, Scalar* inverse) {
  for (long k = 0; k < count; ++k, blocks += n * n, inverse += n * n) {
    const double a = static_cast<double>(blocks[0]), c = n == 2 ? static_cast<double>(blocks[3]) : 0,
                 most = std::sqrt(a) * std::sqrt(c), b = n == 2 ? std::clamp(static_cast<double>(blocks[2]), -most, most) : 0,
                 determinant = (most - b) * (most + b) + damping * (a + c + damping);
    if (!(a >= 0 && c >= 0 && determinant - determinant == 0)) return false;
    inverse[0] = static_cast<Scalar>((c + damping) / determinant);
    if (n == 1) continue;
    inverse[1] = inverse[2] = static_cast<Scalar>(-b / determinant);
    inverse[3] = static_cast<Scalar>((a + damping) / determinant);
  }
  return true;
}

/// The inverse of a factor (n, n), with the damping added to its diagonal, by the `rank` < n eigenvectors q of its largest
/// eigenvalues e, and the mean m of its other ones: 1 / (m + damping) - sum over q q^T (1 / (m + damping) - 1 / (e + damping)).
/// `inverse` (rank * n + 1) becomes the eigenvectors, rows, by the square roots of what they are multiplied by, and
/// 1 / (m + damping). By subspace iteration from rows that are always the same. False where the factor is not finite. Halko et
/// al., "Finding structure with randomness", SIAM Review 2011, arXiv:0909.4061, algorithm 4.4.
template <class Scalar>
bool invert_by_eigenvectors(long rank, long n, double damping, const Scalar* factor, Scalar* inverse, KfacWork<Scalar>& work) {
  constexpr auto no = ops::Transpose::no, yes = ops::Transpose::yes;
  constexpr int passes = 2;
  work.small.resize(std::max(work.small.size(), static_cast<std::size_t>(2 * rank * n + rank * rank + rank)));
  Scalar *rows = work.small.data(),
         *next = rows + rank * n, *const square = next + rank * n, *const values = square + rank * rank;
  for (long i = 0; i < rank * n; ++i) rows[i] = static_cast<Scalar>(random_normal(0, 0, static_cast<std::uint64_t>(i)));
  const auto by_factor = [&] { ops::gemm<Cpu>(no, no, rank, n, n, Scalar(1), rows, n, factor, n, Scalar(0), next, n); };
  for (int pass = 0; pass < passes; ++pass) {
    by_factor();
    std::swap(rows, next);
    if (!ops::cpu::orthonormal_rows(rank, n, rows, work.lapack)) return false;
  }
  by_factor();
  ops::gemm<Cpu>(no, yes, rank, rank, n, Scalar(1), next, n, rows, n, Scalar(0), square, rank);
  if (!ops::cpu::eigen_symmetric(rank, square, values, work.lapack)) return false;
  const double all = mean_of_diagonal(n, std::span(factor, static_cast<std::size_t>(n * n))) * static_cast<double>(n);
  const double rest = std::max(0.0, all - std::accumulate(values, values + rank, 0.0)) / static_cast<double>(n - rank);
  const double of_rest = 1 / (rest + damping);
  for (long i = 0; i < rank; ++i) {
    const double of_this = 1 / (std::max(0.0, static_cast<double>(values[i])) + damping);
    const Scalar root = static_cast<Scalar>(std::sqrt(std::max(0.0, of_rest - of_this)));
    for (long j = 0; j < rank; ++j) square[i * rank + j] *= root;
  }
  ops::gemm<Cpu>(no, no, rank, n, rank, Scalar(1), square, rank, rows, n, Scalar(0), inverse, n);
  inverse[rank * n] = static_cast<Scalar>(of_rest);
  return true;
}

/// Each row of x (count, n), dense, becomes itself by such an inverse.
template <class Scalar>
void multiply_rows(long rank, long n, const Scalar* inverse, long count, Scalar* x, std::vector<Scalar>& scratch) {
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(count * rank)));
  constexpr auto no = ops::Transpose::no, yes = ops::Transpose::yes;
  ops::gemm<Cpu>(no, yes, count, rank, n, Scalar(1), x, n, inverse, n, Scalar(0), scratch.data(), rank);
  ops::gemm<Cpu>(no, no, count, n, rank, Scalar(-1), scratch.data(), rank, inverse, n, inverse[rank * n], x, n);
}
/// Each column of x (n, count), its rows `pitch` apart, likewise.
template <class Scalar>
void multiply_columns(long rank, long n, const Scalar* inverse, long count, Scalar* x, long pitch, std::vector<Scalar>& scratch) {
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(count * rank)));
  constexpr auto no = ops::Transpose::no, yes = ops::Transpose::yes;
  ops::gemm<Cpu>(no, no, rank, count, n, Scalar(1), inverse, n, x, pitch, Scalar(0), scratch.data(), count);
  ops::gemm<Cpu>(yes, no, n, count, rank, Scalar(-1), inverse, n, scratch.data(), count, inverse[rank * n], x, pitch);
}

/// to (a, g) = the inverse (g, a, a) of each column's block times this column of the gradient (a, g), in rows of row_pitch(g).
template <class Scalar> void divide_by_blocks(long a, long g, const Scalar* inverse, const Scalar* gradient, Scalar* to) {
  for (long i = 0; i < a; ++i)
    for (long unit = 0; unit < g; ++unit) {
      Scalar sum = 0;
      for (long j = 0; j < a; ++j) sum += inverse[(unit * a + i) * a + j] * gradient[j * row_pitch(g) + unit];
      to[i * g + unit] = sum;
    }
}

/// What divides by one factor: its inverse or eigenvectors (n, n), and its eigenvalues (n); or what invert_by_eigenvectors makes.
template <class Scalar> struct FactorInverse {
  long n;
  const Scalar *matrix, *values;
  long eigenvectors = 0;
};

/// The columns [begin, end) of to (a, g) = A^-1 gradient G^-1, by the inverses of both factors, for a gradient (a, g) in rows of
/// row_pitch(g), the last of which may lie apart. Other columns are left alone, so that workers can share a layer whose inverses
/// are whole.
template <class Scalar> void divide_by_inverses(const FactorInverse<std::type_identity_t<Scalar>>& of_a,
                                                const FactorInverse<std::type_identity_t<Scalar>>& of_g, const Scalar* gradient,
                                                const Scalar* last_row, long begin, long end, KfacWork<Scalar>& work,
                                                Scalar* to) {
  const long a = of_a.n, g = of_g.n, pitch = row_pitch(g), width = end - begin;
  Scalar* const half = work.product.data();  // (a, width)
  const auto product = [&](long rows, long inner, const Scalar* x, long x_pitch, const Scalar* y, long y_pitch, Scalar* z,
                           long z_pitch) {
    constexpr auto no = ops::Transpose::no;
    ops::gemm<Cpu>(no, no, rows, width, inner, Scalar(1), x, x_pitch, y, y_pitch, Scalar(0), z, z_pitch);
  };
  const auto row = [&](long i) { return i < a - 1 ? gradient + i * pitch : last_row; };
  if (of_g.eigenvectors > 0) {
    for (long i = 0; i < a; ++i) std::copy_n(row(i), g, half + i * g);
    multiply_rows(of_g.eigenvectors, g, of_g.matrix, a, half, work.small);
  } else {
    const long together = last_row == gradient + (a - 1) * pitch ? a : a - 1;
    product(together, g, gradient, pitch, of_g.matrix + begin, g, half, width);
    if (together < a) product(1, g, last_row, pitch, of_g.matrix + begin, g, half + together * width, width);
  }
  if (of_a.eigenvectors == 0) return product(a, a, of_a.matrix, a, half, width, to + begin, g);
  for (long i = 0; i < a; ++i) std::copy_n(half + i * width, width, to + begin + i * g);
  multiply_columns(of_a.eigenvectors, a, of_a.matrix, width, to + begin, g, work.small);
}

/// to (a, g) = A^-1 gradient G^-1, for a gradient (a, g) in rows of row_pitch(g), the last of which may lie apart. The damping is
/// added to products of eigenvalues.
template <class Scalar> void divide_by_factors(KfacInverse how, double damping,
                                               const FactorInverse<std::type_identity_t<Scalar>>& of_a,
                                               const FactorInverse<std::type_identity_t<Scalar>>& of_g, const Scalar* gradient,
                                               const Scalar* last_row, KfacWork<Scalar>& work, Scalar* to) {
  using ops::Transpose;
  const long a = of_a.n, g = of_g.n, pitch = row_pitch(g);
  if (how == KfacInverse::cholesky) return divide_by_inverses(of_a, of_g, gradient, last_row, 0, g, work, to);
  Scalar* const half = work.product.data();
  const auto product = [](Transpose ta, Transpose tb, long m, long n, long inner, const Scalar* x, long x_pitch, const Scalar* y,
                          Scalar* z) {
    ops::gemm<Cpu>(ta, tb, m, n, inner, Scalar(1), x, x_pitch, y, tb == Transpose::yes ? inner : n, Scalar(0), z, n);
  };
  const long together = last_row == gradient + (a - 1) * pitch ? a : a - 1;
  product(Transpose::no, Transpose::yes, together, g, g, gradient, pitch, of_g.matrix, half);  // rows are eigenvectors
  if (together < a) product(Transpose::no, Transpose::yes, 1, g, g, last_row, pitch, of_g.matrix, half + together * g);
  product(Transpose::no, Transpose::no, a, g, a, of_a.matrix, a, half, to);
  for (long i = 0; i < a; ++i)
    for (long j = 0; j < g; ++j) to[i * g + j] /= of_a.values[i] * of_g.values[j] + detail::epsilon_of<Scalar>(damping);
  product(Transpose::no, Transpose::no, a, g, g, to, g, of_g.matrix, half);
  product(Transpose::yes, Transpose::no, a, g, a, of_a.matrix, a, half, to);
}

}  // namespace skein::inline SKEIN_ABI::optim
