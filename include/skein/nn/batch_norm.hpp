// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over channels (the last extent): PyTorch's BatchNorm1d of flat samples, BatchNorm2d of images. Ioffe and
// Szegedy, ICML 2015. Statistics are summed in double through Context::reduce_statistics, so that the workers of a rank see
// one batch (and ranks too, where the policy fills the hook: SyncBatchNorm).
#pragma once
#include <cmath>

#include "../ops/normalization.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Options: Epsilon<N, D> (default 1/100000), Momentum<N, D> (the weight of the new statistics; default 1/10). Training uses
/// the batch's mean and variance and keeps running ones (the variance unbiased); evaluation uses those.
template <class... Options> struct BatchNorm {
  static constexpr double epsilon = detail::PickRatio<Epsilon, 1, 100000, Options...>::value;
  static constexpr double momentum = detail::PickRatio<Momentum, 1, 10, Options...>::value;
  static_assert(epsilon > 0, "BatchNorm's Epsilon must be positive");
  static_assert(momentum >= 0 && momentum <= 1, "BatchNorm's Momentum is the weight of the new statistics: from 0 to 1");

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info;
    const Extents channels{1, {in.last()}};
    info.output = in;
    info.parameters[0] = {.name = "weight", .extents = channels, .init = Init::ones, .decay = false};
    info.parameters[1] = {.name = "bias", .extents = channels, .init = Init::zeros, .decay = false};
    info.buffers[0] = {.name = "running_mean", .extents = channels, .init = Init::zeros};
    info.buffers[1] = {.name = "running_var", .extents = channels, .init = Init::ones};
    info.shared = 2L * in.last();                   // mean and 1 / deviation of the batch
    info.workspace = 4 * ops::column_period(width(in));
    info.flops = 4 * in.count();
    info.saves_input = true;
    info.couples_batch = true;
    return info;
  }

  template <class In, class Frame> static void forward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    using Device = typename Frame::Device;
    constexpr long columns = width(In::extents), period = ops::column_period(columns), channels = In::extents.last();
    const auto& context = *f.context;
    const long rows = f.batch * rows_a_sample(In::extents);
    Scalar *mean = f.workspace, *scale = mean + period, *shift = scale + period;
    const ops::Columns<Scalar> x{f.x, rows, columns};
    if (context.training()) {
      double sums[2 * columns + 1];
      ops::column_moments(Device{}, x, sums, sums + columns, mean);
      sums[2 * columns] = static_cast<double>(rows);
      reduce(context, sums, 2 * columns + 1);
      const double n = sums[2 * columns] > 0 ? sums[2 * columns] : 1;
      for (long c = 0; c < columns; ++c) {
        const double average = c < channels ? sums[c] / n : 0, square = sums[columns + c] / n - average * average;
        const double variance = square <= 0 ? 0 : square, inverse = 1 / std::sqrt(variance + epsilon);      // a NaN stays one
        set(f, c, channels, average, inverse, mean, scale, shift);
        if (context.worker.index == 0 && c < channels) {
          f.shared[c] = static_cast<Scalar>(average);
          f.shared[channels + c] = static_cast<Scalar>(inverse);
          Scalar* running = f.buffers;
          Scalar* running_variance = running + row_pitch(channels);
          running[c] = static_cast<Scalar>((1 - momentum) * static_cast<double>(running[c]) + momentum * average);
          running_variance[c] = static_cast<Scalar>((1 - momentum) * static_cast<double>(running_variance[c]) +
                                                    momentum * variance * (n > 1 ? n / (n - 1) : 1));
        }
      }
      context.worker.barrier();                     // backward of any worker reads what worker 0 wrote
    } else {
      const Scalar* running = f.buffers;
      const Scalar* running_variance = running + row_pitch(channels);
      for (long c = 0; c < columns; ++c) {
        const bool real = c < channels;
        set(f, c, channels, real ? static_cast<double>(running[c]) : 0,
            real ? 1 / std::sqrt(static_cast<double>(running_variance[c]) + epsilon) : 0, mean, scale, shift);
      }
    }
    repeat(mean, columns, period);
    repeat(scale, columns, period);
    repeat(shift, columns, period);
    ops::column_affine(Device{}, x, mean, scale, shift, f.y);
    clear_gaps(f.y, rows, channels, columns);
  }

  template <class In, class Frame> static void backward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    using Device = typename Frame::Device;
    constexpr long columns = width(In::extents), period = ops::column_period(columns), channels = In::extents.last();
    const auto& context = *f.context;
    const long rows = f.batch * rows_a_sample(In::extents);
    Scalar *mean = f.workspace, *a = mean + period, *b = a + period, *constant = b + period;
    const Scalar* weight = f.parameters;
    const Scalar* averages = context.training() ? f.shared : f.buffers;
    const auto inverse = [&](long c) {
      return context.training() ? static_cast<double>(f.shared[channels + c])
                                : 1 / std::sqrt(static_cast<double>(f.buffers[row_pitch(channels) + c]) + epsilon);
    };
    for (long c = 0; c < columns; ++c) mean[c] = c < channels ? averages[c] : Scalar(0);
    repeat(mean, columns, period);
    const ops::Columns<Scalar> x{f.x, rows, columns};
    double sums[2 * columns + 1];
    ops::column_products(Device{}, x, f.dy, mean, sums, sums + columns);
    for (long c = 0; c < channels; ++c) {
      f.gradients[c] += static_cast<Scalar>(sums[columns + c] * inverse(c));
      f.gradients[row_pitch(channels) + c] += static_cast<Scalar>(sums[c]);
    }
    if (!f.dx) return;
    sums[2 * columns] = static_cast<double>(rows);
    if (context.training()) reduce(context, sums, 2 * columns + 1);
    const double n = sums[2 * columns] > 0 ? sums[2 * columns] : 1;
    for (long c = 0; c < columns; ++c) {
      const double scale = c < channels ? inverse(c) * static_cast<double>(weight[c]) : 0;
      const bool moves = context.training() && c < channels;      // the batch's statistics follow x; running ones do not
      a[c] = static_cast<Scalar>(scale);
      b[c] = static_cast<Scalar>(moves ? -scale * inverse(c) * inverse(c) * sums[columns + c] / n : 0);
      constant[c] = static_cast<Scalar>(moves ? -scale * sums[c] / n : 0);
    }
    repeat(a, columns, period);
    repeat(b, columns, period);
    repeat(constant, columns, period);
    ops::column_combine(Device{}, x, f.dy, mean, a, b, constant, f.dx);
    clear_gaps(f.dx, rows, channels, columns);
  }

 private:
  /// Columns of the batch as a dense matrix: a flat sample is a padded row, whose gap is columns of zeros.
  static constexpr long width(const Extents& in) { return in.flat() ? row_pitch(in.last()) : in.last(); }
  static constexpr long rows_a_sample(const Extents& in) { return in.count() / in.last(); }

  /// Whatever stood in the gaps behind x: what is written is zeros.
  template <class Scalar> static void clear_gaps(Scalar* to, long rows, long channels, long columns) {
    for (long r = 0; channels < columns && r < rows; ++r)
      for (long c = channels; c < columns; ++c) to[r * columns + c] = 0;
  }
  template <class Scalar> static void repeat(Scalar* values, long columns, long period) {
    for (long i = columns; i < period; ++i) values[i] = values[i - columns];
  }
  /// y = (x - mean) scale + shift; what rounding took from the mean goes into the shift.
  template <class Frame, class Scalar> static void set(const Frame& f, long c, long channels, double average, double inverse,
                                                       Scalar* mean, Scalar* scale, Scalar* shift) {
    const double weight = c < channels ? static_cast<double>(f.parameters[c]) : 0;
    const double bias = c < channels ? static_cast<double>(f.parameters[row_pitch(channels) + c]) : 0;
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

}  // namespace skein::inline SKEIN_ABI::nn
