// SPDX-License-Identifier: Apache-2.0
// Batch normalisation on the processor, by the workers of a rank: each sums over its slice, in double; the context adds up; then
// each scales its slice. Channels and Columns are compile-time numbers: few sums stand on the stack. The pieces are apart for
// what is fused with it (conv_batch_norm.hpp).
#pragma once
#include <cmath>
#include <concepts>

#include "../batch_norm_types.hpp"
#include "rectified_normalization.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scalars of a worker's workspace for rows of so many columns: six arrays of coefficients, and behind them the sums that do not
/// stand on the stack.
constexpr long batch_norm_workspace(long columns) { return 6 * column_period(columns) + scalars_of_doubles(2 * columns + 1); }

/// Batch normalization on the processor, forward and backward, by the workers of a rank.
template <int Channels, long Columns_, class Scalar> struct BatchNorm {
  using Call = BatchNormCall<Scalar>;
  static constexpr long channels = Channels, columns = Columns_, period = column_period(columns);

  /// Sums of each column over some rows, and how many rows they are, as they go from worker to worker.
  struct Sums {
    DoublesOfCall<2 * columns + 1> values;
    /// In the workspace behind the coefficients, or behind other sums there.
    explicit Sums(const Call& f, bool second = false)
        : values(f.workspace + 6 * period + (second ? scalars_of_doubles(2 * columns + 1) / 2 : 0)) {}
    double* first() { return values.data(); }
    double* second() { return first() + columns; }
    double& rows() { return first()[2 * columns]; }
  };

  template <class Context> static void forward(const Call& f, const Context& context) {
    if (f.training) {
      Sums sums(f);
      column_moments(rows_of(f), sums.first(), sums.second(), f.workspace);
      use_batch(f, sums, context);
    } else {
      use_running(f);
    }
    normalize(f);
  }
  template <class Context> static void backward(const Call& f, const Context& context) {
    Sums sums(f);
    load(f);
    products(f, sums);
    if (combine_by(f, sums, context)) combine(f, rows_of(f), f.dy, f.dx);
  }
  /// Forward's output in training once more, with forward's bits: where the coefficients are kept (scale, shift).
  static void remake(const Call& f) {
    load(f);
    normalize(f);
  }

  // ---- the pieces: forward is statistics, which leave coefficients in the workspace, and a pass

  static Columns<Scalar> rows_of(const Call& f) { return {f.x, f.rows(), columns}; }
  static ColumnAffine<Scalar> affine(const Call& f) { return {f.workspace, f.workspace + period, f.workspace + 2 * period}; }
  static ColumnCombine<Scalar> combination(const Call& f) {
    return {f.workspace, f.workspace + 3 * period, f.workspace + 4 * period, f.workspace + 5 * period};
  }

  /// Coefficients by the statistics of the batch, from this worker's moments; running ones follow.
  template <class Context> static void use_batch(const Call& f, Sums& sums, const Context& context) {
    moments_of_batch(f, sums, context);
    const double n = sums.rows() > 0 ? sums.rows() : 1;
    const double momentum = sums.rows() > 0 ? f.momentum : 0;  // a batch of none says nothing
    for (long c = 0; c < columns; ++c) {
      const double average = c < channels ? sums.first()[c] : 0, square = sums.second()[c];
      const double variance = square <= 0 ? 0 : square, inverse = 1 / std::sqrt(variance + f.epsilon);  // a NaN stays one
      set(f, c, average, inverse);
      if (context.worker.index == 0 && c < channels) {
        f.mean[c] = static_cast<Scalar>(average);
        f.inverse[c] = static_cast<Scalar>(inverse);
        if (f.scale) {
          f.scale[c] = affine(f).scale[c];
          f.shift[c] = affine(f).shift[c];
        }
        f.running_mean[c] = static_cast<Scalar>((1 - momentum) * static_cast<double>(f.running_mean[c]) + momentum * average);
        f.running_variance[c] = static_cast<Scalar>((1 - momentum) * static_cast<double>(f.running_variance[c]) +
                                                    momentum * variance * (n > 1 ? n / (n - 1) : 1));
      }
    }
    context.worker.barrier();  // backward of any worker reads what worker 0 wrote
    repeat(f, 0, 3);
  }
  /// Coefficients by the running statistics.
  static void use_running(const Call& f) {
    for (long c = 0; c < columns; ++c)
      set(f, c, c < channels ? static_cast<double>(f.running_mean[c]) : 0, c < channels ? running_inverse(f, c) : 0);
    repeat(f, 0, 3);
  }
  /// The whole slice from x to y, with the sum and the ReLU behind it.
  static void normalize(const Call& f) {
    const ColumnAffine<Scalar> k = affine(f);
    if (f.has_relu) rectified_affine(rows_of(f), k, f.addend, f.y);
    else column_affine(rows_of(f), k.mean, k.scale, k.shift, f.y);
    clear_gaps(f.y, f.rows());
  }

  /// Forward's coefficients for backward.
  static void load(const Call& f) {
    if (!f.training && f.has_relu) return use_running(f);
    for (long c = 0; c < columns; ++c) {
      const bool real = c < channels;
      f.workspace[c] = real ? (f.training ? f.mean[c] : f.running_mean[c]) : Scalar(0);
      if (!f.scale) continue;
      f.workspace[period + c] = real ? f.scale[c] : Scalar(0);
      f.workspace[2 * period + c] = real ? f.shift[c] : Scalar(0);
    }
    repeat(f, 0, f.scale ? 3 : 1);
  }
  /// The sums that backward needs of the whole slice. Behind a sum and a ReLU the gradient of the sum is written to dsum.
  static void products(const Call& f, Sums& sums) {
    if (f.dsum) masked_products(rows_of(f), affine(f).mean, f.dy, f.y, f.dsum, sums.first(), sums.second());
    else if (f.has_relu) rectified_products(rows_of(f), affine(f), f.dy, sums.first(), sums.second());
    else column_products(rows_of(f), f.dy, affine(f).mean, sums.first(), sums.second());
  }
  /// The parameters' gradients, and backward's coefficients. False where nobody wants the gradient of x.
  template <class Context> static bool combine_by(const Call& f, Sums& sums, const Context& context) {
    const auto inverse = [&](long c) { return f.training ? static_cast<double>(f.inverse[c]) : running_inverse(f, c); };
    for (long c = 0; c < channels; ++c) {
      f.dweight[c] += static_cast<Scalar>(sums.second()[c] * inverse(c));
      f.dbias[c] += static_cast<Scalar>(sums.first()[c]);
    }
    if (!f.wants_dx()) return false;
    sums.rows() = static_cast<double>(f.rows());
    if (f.training) reduce(context, sums);
    const double n = sums.rows() > 0 ? sums.rows() : 1;
    Scalar *a = f.workspace + 3 * period, *b = a + period, *constant = b + period;
    for (long c = 0; c < columns; ++c) {
      const double scale = c < channels ? inverse(c) * static_cast<double>(f.weight[c]) : 0;
      const bool moves = f.training && c < channels;  // the batch's statistics follow x; running ones do not
      a[c] = static_cast<Scalar>(scale);
      b[c] = static_cast<Scalar>(moves ? -scale * inverse(c) * inverse(c) * sums.second()[c] / n : 0);
      constant[c] = static_cast<Scalar>(moves ? -scale * sums.first()[c] / n : 0);
    }
    repeat(f, 3, 6);
    return true;
  }
  /// The gradient of x for some rows of it, and of dy or, behind a sum and a ReLU, of dsum.
  static void combine(const Call& f, const Columns<Scalar>& x, const Scalar* dy, Scalar* dx) {
    const ColumnCombine<Scalar> k = combination(f);
    if (f.has_relu && !f.dsum) rectified_combine(x, affine(f), dy, k, dx);
    else column_combine(x, dy, k.mean, k.a, k.b, k.constant, dx);
    clear_gaps(dx, x.rows);
  }

 private:
  /// Sums of x and x^2 become means and variances of the whole batch. Of doubles those are summed once more, about the means:
  /// squares of values far from zero have no digits left for the variance. (Of floats they have, in double.)
  template <class Context> static void moments_of_batch(const Call& f, Sums& sums, const Context& context) {
    sums.rows() = static_cast<double>(f.rows());
    reduce(context, sums);
    const double n = sums.rows() > 0 ? sums.rows() : 1;
    double *mean = sums.first(), *variance = sums.second();
    for (long c = 0; c < columns; ++c) mean[c] /= n, variance[c] = variance[c] / n - mean[c] * mean[c];
    if constexpr (std::same_as<Scalar, double>) {
      Sums about(f, true);
      for (long i = 0; i <= 2 * columns; ++i) about.first()[i] = 0;
      for (long r = 0; r < f.rows(); ++r)
        for (long c = 0; c < columns; ++c) {
          const double d = f.x[r * columns + c] - mean[c];
          about.first()[c] += d;
          about.second()[c] += d * d;
        }
      reduce(context, about);
      for (long c = 0; c < columns; ++c) {
        const double rest = about.first()[c] / n;
        mean[c] += rest;
        variance[c] = about.second()[c] / n - rest * rest;
      }
    }
  }
  static double running_inverse(const Call& f, long c) {
    return 1 / std::sqrt(static_cast<double>(f.running_variance[c]) + f.epsilon);
  }
  /// Whatever stood in the gaps behind x: what is written is zeros.
  static void clear_gaps(Scalar* to, long rows) {
    for (long r = 0; channels < columns && r < rows; ++r)
      for (long c = channels; c < columns; ++c) to[r * columns + c] = 0;
  }
  /// Arrays [begin, end) of the workspace, to the whole period.
  static void repeat(const Call& f, int begin, int end) {
    for (Scalar* values = f.workspace + begin * period; values != f.workspace + end * period; values += period)
      for (long i = columns; i < period; ++i) values[i] = values[i - columns];
  }
  /// y = (x - mean) scale + shift; what rounding took from the mean goes into the shift.
  static void set(const Call& f, long c, double average, double inverse) {
    const double weight = c < channels ? static_cast<double>(f.weight[c]) : 0;
    const double bias = c < channels ? static_cast<double>(f.bias[c]) : 0;
    Scalar* const k = f.workspace + c;
    k[0] = static_cast<Scalar>(average);
    k[period] = static_cast<Scalar>(inverse * weight);
    k[2 * period] = static_cast<Scalar>(bias + (static_cast<double>(k[0]) - average) * inverse * weight);
  }
  template <class Context> static void reduce(const Context& context, Sums& sums) {
    context.reduce_statistics(sums.first(), 2 * columns + 1);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
