// SPDX-License-Identifier: Apache-2.0
// Batch normalisation on the processor, by the workers of a rank: each sums over its slice, in double; the context adds up; then
// each scales its slice. Channels and Columns are compile-time numbers: sums stand on the stack.
#pragma once
#include <cmath>

#include "../batch_norm_types.hpp"
#include "normalization.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Batch normalization on the processor, forward and backward, by the workers of a rank.
template <int Channels, long Columns_, class Scalar> struct BatchNorm {
  using Call = BatchNormCall<Scalar>;
  static constexpr long channels = Channels, columns = Columns_, period = column_period(columns);

  template <class Context> static void forward(const Call& f, const Context& context) {
    Scalar *mean = f.workspace, *scale = mean + period, *shift = scale + period;
    const Columns<Scalar> x{f.x, f.rows(), columns};
    if (f.training) {
      double sums[2 * columns + 1];
      column_moments(x, sums, sums + columns, mean);
      sums[2 * columns] = static_cast<double>(f.rows());
      reduce(context, sums, 2 * columns + 1);
      const double n = sums[2 * columns] > 0 ? sums[2 * columns] : 1;
      for (long c = 0; c < columns; ++c) {
        const double average = c < channels ? sums[c] / n : 0, square = sums[columns + c] / n - average * average;
        const double variance = square <= 0 ? 0 : square, inverse = 1 / std::sqrt(variance + f.epsilon);  // a NaN stays one
        set(f, c, average, inverse, mean, scale, shift);
        if (context.worker.index == 0 && c < channels) {
          f.mean[c] = static_cast<Scalar>(average);
          f.inverse[c] = static_cast<Scalar>(inverse);
          f.running_mean[c] =
              static_cast<Scalar>((1 - f.momentum) * static_cast<double>(f.running_mean[c]) + f.momentum * average);
          f.running_variance[c] = static_cast<Scalar>((1 - f.momentum) * static_cast<double>(f.running_variance[c]) +
                                                      f.momentum * variance * (n > 1 ? n / (n - 1) : 1));
        }
      }
      context.worker.barrier();  // backward of any worker reads what worker 0 wrote
    } else {
      for (long c = 0; c < columns; ++c) {
        const bool real = c < channels;
        set(f, c, real ? static_cast<double>(f.running_mean[c]) : 0,
            real ? 1 / std::sqrt(static_cast<double>(f.running_variance[c]) + f.epsilon) : 0, mean, scale, shift);
      }
    }
    repeat(mean);
    repeat(scale);
    repeat(shift);
    column_affine(x, mean, scale, shift, f.y);
    clear_gaps(f.y, f.rows());
  }

  template <class Context> static void backward(const Call& f, const Context& context) {
    Scalar *mean = f.workspace, *a = mean + period, *b = a + period, *constant = b + period;
    const Scalar* averages = f.training ? f.mean : f.running_mean;
    const auto inverse = [&](long c) {
      return f.training ? static_cast<double>(f.inverse[c])
                        : 1 / std::sqrt(static_cast<double>(f.running_variance[c]) + f.epsilon);
    };
    for (long c = 0; c < columns; ++c) mean[c] = c < channels ? averages[c] : Scalar(0);
    repeat(mean);
    const Columns<Scalar> x{f.x, f.rows(), columns};
    double sums[2 * columns + 1];
    column_products(x, f.dy, mean, sums, sums + columns);
    for (long c = 0; c < channels; ++c) {
      f.dweight[c] += static_cast<Scalar>(sums[columns + c] * inverse(c));
      f.dbias[c] += static_cast<Scalar>(sums[c]);
    }
    if (!f.dx) return;
    sums[2 * columns] = static_cast<double>(f.rows());
    if (f.training) reduce(context, sums, 2 * columns + 1);
    const double n = sums[2 * columns] > 0 ? sums[2 * columns] : 1;
    for (long c = 0; c < columns; ++c) {
      const double scale = c < channels ? inverse(c) * static_cast<double>(f.weight[c]) : 0;
      const bool moves = f.training && c < channels;  // the batch's statistics follow x; running ones do not
      a[c] = static_cast<Scalar>(scale);
      b[c] = static_cast<Scalar>(moves ? -scale * inverse(c) * inverse(c) * sums[columns + c] / n : 0);
      constant[c] = static_cast<Scalar>(moves ? -scale * sums[c] / n : 0);
    }
    repeat(a);
    repeat(b);
    repeat(constant);
    column_combine(x, f.dy, mean, a, b, constant, f.dx);
    clear_gaps(f.dx, f.rows());
  }

 private:
  /// Whatever stood in the gaps behind x: what is written is zeros.
  static void clear_gaps(Scalar* to, long rows) {
    for (long r = 0; channels < columns && r < rows; ++r)
      for (long c = channels; c < columns; ++c) to[r * columns + c] = 0;
  }
  static void repeat(Scalar* values) {
    for (long i = columns; i < period; ++i) values[i] = values[i - columns];
  }
  /// y = (x - mean) scale + shift; what rounding took from the mean goes into the shift.
  static void set(const Call& f, long c, double average, double inverse, Scalar* mean, Scalar* scale, Scalar* shift) {
    const double weight = c < channels ? static_cast<double>(f.weight[c]) : 0;
    const double bias = c < channels ? static_cast<double>(f.bias[c]) : 0;
    mean[c] = static_cast<Scalar>(average);
    scale[c] = static_cast<Scalar>(inverse * weight);
    shift[c] = static_cast<Scalar>(bias + (static_cast<double>(mean[c]) - average) * inverse * weight);
  }
  /// In pieces that the exchange of the workers holds.
  template <class Context> static void reduce(const Context& context, double* values, long n) {
    const long piece = context.worker.count > 1 ? context.exchange_size : n;
    for (long i = 0; i < n; i += piece) context.reduce_statistics(values + i, n - i < piece ? n - i : piece);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
