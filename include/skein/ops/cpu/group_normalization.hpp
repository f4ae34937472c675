// SPDX-License-Identifier: Apache-2.0
// Group normalisation on the processor by the passes over columns that batch normalisation has: the values of a sample are a
// matrix (pixels, channels), whose sums per channel, in double, are added up in groups of channels. Wu and He, ECCV 2018.
#pragma once
#include <cmath>
#include <concepts>

#include "normalization.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scalars of a worker's workspace: four coefficients of a column, and the sums that do not stand on the stack.
constexpr long group_normalize_workspace(long channels) { return 4 * column_period(channels) + 2 * scalars_of_doubles(channels); }

/// The groups of one sample of Channels in Groups. saved: (Groups, 2), mean and 1 / deviation.
template <int Channels, int Groups, class Scalar> struct GroupNormalize {
  static constexpr long channels = Channels, width = Channels / Groups, period = column_period(channels);

  static void forward(const Columns<Scalar>& x, const Scalar* weight, const Scalar* bias, double epsilon, Scalar* y,
                      Scalar* saved_for_backward, Scalar* workspace) {
    Scalar *mean = workspace, *scale = mean + period, *shift = scale + period;
    Doubles of_values = doubles(workspace), of_squares = doubles(workspace, true);
    double *sums = of_values.data(), *squares = of_squares.data();
    column_moments(x, sums, squares, mean);
    const double n = static_cast<double>(x.rows * width);
    for (long g = 0; g < Groups; ++g) {
      double average = of_group(sums, g) / n, variance = of_group(squares, g) / n - average * average;
      if constexpr (std::same_as<Scalar, double>) about_mean(x, g, average, variance);
      const double inverse = 1 / std::sqrt((variance <= 0 ? 0 : variance) + epsilon);  // a NaN stays one
      saved_for_backward[2 * g] = static_cast<Scalar>(average);
      saved_for_backward[2 * g + 1] = static_cast<Scalar>(inverse);
      for (long c = g * width; c < (g + 1) * width; ++c) {  // what rounding took from the mean goes into the shift
        const double w = static_cast<double>(weight[c]) * inverse;
        mean[c] = static_cast<Scalar>(average);
        scale[c] = static_cast<Scalar>(w);
        shift[c] = static_cast<Scalar>(static_cast<double>(bias[c]) + (static_cast<double>(mean[c]) - average) * w);
      }
    }
    for (Scalar* coefficients : {mean, scale, shift}) repeat(coefficients);
    column_affine(x, mean, scale, shift, y);
  }

  /// Adds to dweight and dbias; writes dx where it is not null.
  static void backward(const Columns<Scalar>& x, const Scalar* dy, const Scalar* weight, const Scalar* saved_for_backward,
                       Scalar* dx, Scalar* dweight, Scalar* dbias, Scalar* workspace) {
    Scalar *mean = workspace, *a = mean + period, *b = a + period, *constant = b + period;
    for (long c = 0; c < channels; ++c) mean[c] = saved_for_backward[2 * (c / width)];
    repeat(mean);
    Doubles of_gradients = doubles(workspace), of_products = doubles(workspace, true);
    double *sums = of_gradients.data(), *products = of_products.data();
    column_products(x, dy, mean, sums, products);
    const double n = static_cast<double>(x.rows * width);
    for (long g = 0; g < Groups; ++g) {
      const double inverse = static_cast<double>(saved_for_backward[2 * g + 1]);
      for (long c = g * width; c < (g + 1) * width; ++c) {
        dweight[c] += static_cast<Scalar>(products[c] * inverse);
        dbias[c] += static_cast<Scalar>(sums[c]);
        sums[c] *= static_cast<double>(weight[c]);
        products[c] *= static_cast<double>(weight[c]);
      }
      const double average = of_group(sums, g) / n, along = of_group(products, g) / n;
      for (long c = g * width; c < (g + 1) * width; ++c) {
        a[c] = static_cast<Scalar>(inverse * static_cast<double>(weight[c]));
        b[c] = static_cast<Scalar>(-inverse * inverse * inverse * along);
        constant[c] = static_cast<Scalar>(-inverse * average);
      }
    }
    if (!dx) return;
    for (Scalar* coefficients : {a, b, constant}) repeat(coefficients);
    column_combine(x, dy, mean, a, b, constant, dx);
  }

 private:
  using Doubles = DoublesOfCall<channels>;
  /// In the workspace behind the coefficients, or behind others there.
  static Doubles doubles(Scalar* workspace, bool second = false) {
    return Doubles(workspace + 4 * period + (second ? scalars_of_doubles(channels) : 0));
  }
  /// Takes mean and variance once more about that mean: squares of doubles far from zero have no digits left for the variance.
  static void about_mean(const Columns<Scalar>& x, long g, double& average, double& variance) {
    double sum = 0, square = 0;
    for (long r = 0; r < x.rows; ++r)
      for (long c = g * width; c < (g + 1) * width; ++c) {
        const double d = x.x[r * channels + c] - average;
        sum += d;
        square += d * d;
      }
    const double n = static_cast<double>(x.rows * width), rest = sum / n;
    average += rest;
    variance = square / n - rest * rest;
  }
  static double of_group(const double* of_channels, long g) {
    double sum = 0;
    for (long c = g * width; c < (g + 1) * width; ++c) sum += of_channels[c];
    return sum;
  }
  static void repeat(Scalar* values) {
    for (long i = channels; i < period; ++i) values[i] = values[i - channels];
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
