// SPDX-License-Identifier: Apache-2.0
// Batch normalisation on the processor, by the workers of a rank: each sums over its slice, in double; the context adds up; then
// each scales its slice. Channels and Columns are compile-time numbers: few sums stand on the stack. The pieces are apart for
// what is fused with it (conv_batch_norm.hpp).
//
//     x (rows, columns), y, dx, dy likewise; r a row, c a column; n the rows of all ranks; k coefficients
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
    explicit Sums(const Call& call, bool second = false)
        : values(call.workspace + 6 * period + (second ? scalars_of_doubles(2 * columns + 1) / 2 : 0)) {}
    double* first() { return values.data(); }
    double* second() { return first() + columns; }
    double& rows() { return first()[2 * columns]; }
  };

  template <class Context> static void forward(const Call& call, const Context& context) {
    if (call.training) {
      Sums sums(call);
      column_moments(rows_of(call), sums.first(), sums.second(), call.workspace);
      use_batch(call, sums, context);
    } else {
      use_running(call);
    }
    normalize(call);
  }
  template <class Context> static void backward(const Call& call, const Context& context) {
    Sums sums(call);
    load(call);
    products(call, sums);
    if (combine_by(call, sums, context)) combine(call, rows_of(call), call.dy, call.dx);
  }
  /// Forward's output in training once more, with forward's bits: where the coefficients are kept (scale, shift).
  static void remake(const Call& call) {
    load(call);
    normalize(call);
  }

  // ---- the pieces: forward is statistics, which leave coefficients in the workspace, and a pass

  static Columns<Scalar> rows_of(const Call& call) { return {call.x, call.rows(), columns}; }
  static ColumnAffine<Scalar> affine(const Call& call) {
    return {call.workspace, call.workspace + period, call.workspace + 2 * period};
  }
  static ColumnCombine<Scalar> combination(const Call& call) {
    return {call.workspace, call.workspace + 3 * period, call.workspace + 4 * period, call.workspace + 5 * period};
  }

  /// Coefficients by the statistics of the batch, from this worker's moments; running ones follow.
  template <class Context> static void use_batch(const Call& call, Sums& sums, const Context& context) {
    moments_of_batch(call, sums, context);
    const double n = sums.rows() > 0 ? sums.rows() : 1;
    const double momentum = sums.rows() > 0 ? call.momentum : 0;  // a batch of none says nothing
    for (long c = 0; c < columns; ++c) {
      const double average = c < channels ? sums.first()[c] : 0, square = sums.second()[c];
      const double variance = square <= 0 ? 0 : square, inverse = 1 / std::sqrt(variance + call.epsilon);  // a NaN stays one
      set(call, c, average, inverse);
      if (context.worker.index == 0 && c < channels) {
        call.mean[c] = static_cast<Scalar>(average);
        call.inverse[c] = static_cast<Scalar>(inverse);
        if (call.scale) {
          call.scale[c] = affine(call).scale[c];
          call.shift[c] = affine(call).shift[c];
        }
        call.running_mean[c] =
            static_cast<Scalar>((1 - momentum) * static_cast<double>(call.running_mean[c]) + momentum * average);
        call.running_variance[c] = static_cast<Scalar>((1 - momentum) * static_cast<double>(call.running_variance[c]) +
                                                       momentum * variance * (n > 1 ? n / (n - 1) : 1));
      }
    }
    context.worker.barrier();  // backward of any worker reads what worker 0 wrote
    repeat(call, 0, 3);
  }
  /// Coefficients by the running statistics.
  static void use_running(const Call& call) {
    for (long c = 0; c < columns; ++c)
      set(call, c, c < channels ? static_cast<double>(call.running_mean[c]) : 0, c < channels ? running_inverse(call, c) : 0);
    repeat(call, 0, 3);
  }
  /// The whole slice from x to y, with the sum and the ReLU behind it.
  static void normalize(const Call& call) {
    const ColumnAffine<Scalar> k = affine(call);
    if (call.has_relu) rectified_affine(rows_of(call), k, call.addend, call.y);
    else column_affine(rows_of(call), k.mean, k.scale, k.shift, call.y);
    clear_gaps(call.y, call.rows());
  }

  /// Forward's coefficients for backward.
  static void load(const Call& call) {
    if (!call.training && call.has_relu) return use_running(call);
    for (long c = 0; c < columns; ++c) {
      const bool real = c < channels;
      call.workspace[c] = real ? (call.training ? call.mean[c] : call.running_mean[c]) : Scalar(0);
      if (!call.scale) continue;
      call.workspace[period + c] = real ? call.scale[c] : Scalar(0);
      call.workspace[2 * period + c] = real ? call.shift[c] : Scalar(0);
    }
    repeat(call, 0, call.scale ? 3 : 1);
  }
  /// The sums that backward needs of the whole slice. Behind a sum and a ReLU the gradient of the sum is written to dsum.
  static void products(const Call& call, Sums& sums) {
    if (call.dsum) masked_products(rows_of(call), affine(call).mean, call.dy, call.y, call.dsum, sums.first(), sums.second());
    else if (call.has_relu) rectified_products(rows_of(call), affine(call), call.dy, sums.first(), sums.second());
    else column_products(rows_of(call), call.dy, affine(call).mean, sums.first(), sums.second());
  }
  /// The parameters' gradients, and backward's coefficients. False where nobody wants the gradient of x.
  template <class Context> static bool combine_by(const Call& call, Sums& sums, const Context& context) {
    const auto inverse = [&](long c) { return call.training ? static_cast<double>(call.inverse[c]) : running_inverse(call, c); };
    for (long c = 0; c < channels; ++c) {
      call.dweight[c] += static_cast<Scalar>(sums.second()[c] * inverse(c));
      call.dbias[c] += static_cast<Scalar>(sums.first()[c]);
    }
    if (!call.wants_dx()) return false;
    sums.rows() = static_cast<double>(call.rows());
    if (call.training) reduce(context, sums);
    const double n = sums.rows() > 0 ? sums.rows() : 1;
    Scalar *a = call.workspace + 3 * period, *b = a + period, *constant = b + period;
    for (long c = 0; c < columns; ++c) {
      const double scale = c < channels ? inverse(c) * static_cast<double>(call.weight[c]) : 0;
      const bool moves = call.training && c < channels;  // the batch's statistics follow x; running ones do not
      a[c] = static_cast<Scalar>(scale);
      b[c] = static_cast<Scalar>(moves ? -scale * inverse(c) * inverse(c) * sums.second()[c] / n : 0);
      constant[c] = static_cast<Scalar>(moves ? -scale * sums.first()[c] / n : 0);
    }
    repeat(call, 3, 6);
    return true;
  }
  /// The gradient of x for some rows of it, and of dy or, behind a sum and a ReLU, of dsum.
  static void combine(const Call& call, const Columns<Scalar>& x, const Scalar* dy, Scalar* dx) {
    const ColumnCombine<Scalar> k = combination(call);
    if (call.has_relu && !call.dsum) rectified_combine(x, affine(call), dy, k, dx);
    else column_combine(x, dy, k.mean, k.a, k.b, k.constant, dx);
    clear_gaps(dx, x.rows);
  }

 private:
  /// Sums of x and x^2 become means and variances of the whole batch. Of doubles those are summed once more, about the means:
  /// squares of values far from zero have no digits left for the variance. (Of floats they have, in double.)
  template <class Context> static void moments_of_batch(const Call& call, Sums& sums, const Context& context) {
    sums.rows() = static_cast<double>(call.rows());
    reduce(context, sums);
    const double n = sums.rows() > 0 ? sums.rows() : 1;
    double *mean = sums.first(), *variance = sums.second();
    for (long c = 0; c < columns; ++c) mean[c] /= n, variance[c] = variance[c] / n - mean[c] * mean[c];
    if constexpr (std::same_as<Scalar, double>) {
      Sums about(call, true);
      for (long i = 0; i <= 2 * columns; ++i) about.first()[i] = 0;
      for (long r = 0; r < call.rows(); ++r)
        for (long c = 0; c < columns; ++c) {
          const double d = call.x[r * columns + c] - mean[c];
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
  static double running_inverse(const Call& call, long c) {
    return 1 / std::sqrt(static_cast<double>(call.running_variance[c]) + call.epsilon);
  }
  /// Whatever stood in the gaps behind x: what is written is zeros.
  static void clear_gaps(Scalar* to, long rows) {
    for (long r = 0; channels < columns && r < rows; ++r)
      for (long c = channels; c < columns; ++c) to[r * columns + c] = 0;
  }
  /// Arrays [begin, end) of the workspace, to the whole period.
  static void repeat(const Call& call, int begin, int end) {
    for (Scalar* values = call.workspace + begin * period; values != call.workspace + end * period; values += period)
      for (long i = columns; i < period; ++i) values[i] = values[i - columns];
  }
  /// y = (x - mean) scale + shift; what rounding took from the mean goes into the shift.
  static void set(const Call& call, long c, double average, double inverse) {
    const double weight = c < channels ? static_cast<double>(call.weight[c]) : 0;
    const double bias = c < channels ? static_cast<double>(call.bias[c]) : 0;
    Scalar* const k = call.workspace + c;
    k[0] = static_cast<Scalar>(average);
    k[period] = static_cast<Scalar>(inverse * weight);
    k[2 * period] = static_cast<Scalar>(bias + (static_cast<double>(k[0]) - average) * inverse * weight);
  }
  template <class Context> static void reduce(const Context& context, Sums& sums) {
    context.reduce_statistics(sums.first(), 2 * columns + 1);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
