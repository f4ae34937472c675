// SPDX-License-Identifier: Apache-2.0
// Own kernels of batch normalisation on the GPU: sums over columns in double, coefficients of a channel, one pass over the batch.
// What cuDNN does not do: statistics over several ranks, padded rows, a ReLU behind in float, evaluation, doubles.
//
//     x (rows, columns), y, dx, dy likewise; i an element of them, c a column, s the two sums of a column; W values of a pack, k
//     one of them
#pragma once
#include <cmath>
#include <type_traits>

#include "../batch_norm_types.hpp"
#include "column_sums.hpp"
#include "row_strips.hpp"

namespace skein::inline SKEIN_ABI::ops::kernel {

/// Sums of x and x^2.
template <class Value> struct Moments {
  static constexpr int widest = cuda::pack_width<Value>;
  using Run = RunSums<Value>;
  const Value* x;
  bool aligned() const { return cuda::aligned_16(x); }
  template <int W> SKEIN_HOST_DEVICE cuda::Pack<Value, W> load(long i) const { return cuda::load<W>(x + i); }
  template <int W, class Sums> SKEIN_HOST_DEVICE void add(long, long, const cuda::Pack<Value, W>& in, Sums* sums) const {
    for (int k = 0; k < W; ++k) {
      const auto v = static_cast<decltype(sums->first)>(in.value[k]);
      sums[k].first += v;
      sums[k].second += v * v;
    }
  }
};

/// Elements of a batch that backward reads: x, dy, and y where there is a ReLU.
template <class Value, int W> struct BackwardPack {
  cuda::Pack<Value, W> x, dy, y;
  template <class Call> SKEIN_HOST_DEVICE static BackwardPack load(const Call& call, long i) {
    BackwardPack p;
    p.x = cuda::load<W>(call.x + i);
    p.dy = cuda::load<W>(call.dy + i);
    if (call.has_relu) p.y = cuda::load<W>(call.y + i);
    return p;
  }
};
template <class Call> bool backward_aligned(const Call& call) {
  return cuda::aligned_16(call.x, call.dy, call.has_relu ? call.y : nullptr);
}

/// Sums of dy and dy (x - mean), of what a ReLU let pass.
template <class Value, class Parameter> struct Products {
  static constexpr int widest = cuda::pack_width<Value>;
  using Run = RunSums<Value>;
  BatchNormCall<Value, Parameter> call;
  long channels;
  bool aligned() const { return backward_aligned(call); }
  template <int W> SKEIN_HOST_DEVICE BackwardPack<Value, W> load(long i) const { return BackwardPack<Value, W>::load(call, i); }
  template <int W, class Sums> SKEIN_HOST_DEVICE void add(long, long c, const BackwardPack<Value, W>& in, Sums* sums) const {
    using Sum = decltype(sums->first);
    const Parameter* mean = call.training ? call.mean : call.running_mean;
    for (int k = 0; k < W; ++k) {
      if (c + k >= channels || (call.has_relu && !(static_cast<Parameter>(in.y.value[k]) > 0))) continue;
      const Sum g = static_cast<Sum>(in.dy.value[k]);
      sums[k].first += g;
      sums[k].second += g * (static_cast<Sum>(in.x.value[k]) - static_cast<Sum>(mean[c + k]));
    }
  }
};

/// The sums as reduce_statistics takes them: firsts, seconds, number of rows. Gaps are zeros.
struct StoreSums {
  double* sums;
  long channels, columns, rows;
  constexpr void operator()(long c, const TwoSums& s) const {
    sums[c] = c < channels ? s.first : 0;
    sums[columns + c] = c < channels ? s.second : 0;
    if (c == 0) sums[2 * columns] = static_cast<double>(rows);
  }
};
/// finish(c, sums, rows) of what came back.
template <class Finish> struct FromSums {
  const double* sums;
  long columns;
  Finish finish;
  constexpr void operator()(long c) const { finish.of(c, {sums[c], sums[columns + c]}, sums[2 * columns]); }
};

/// Three numbers a column: where a pass over the batch finds them.
template <class Parameter> struct Coefficients { Parameter *mean, *scale, *shift; };

/// The statistics of a batch, the running ones, and y = (x - mean) scale + shift; what rounding took from the mean goes into the
/// shift.
template <class Value, class Parameter> struct Statistics {
  BatchNormCall<Value, Parameter> call;
  Coefficients<Parameter> to;
  long channels, rows;
  SKEIN_HOST_DEVICE void operator()(long c, const TwoSums& s) const { of(c, s, static_cast<double>(rows)); }
  /// A batch's.
  SKEIN_HOST_DEVICE void of(long c, const TwoSums& s, double rows_of_all) const {
    if (c >= channels) return gap(c);
    const double n = rows_of_all > 0 ? rows_of_all : 1, average = s.first / n, square = s.second / n - average * average;
    const double variance = square <= 0 ? 0 : square, inverse = 1 / std::sqrt(variance + call.epsilon);  // a NaN stays one
    const double momentum = rows_of_all > 0 ? call.momentum : 0;  // a batch of none says nothing
    set(c, average, inverse);
    call.mean[c] = static_cast<Parameter>(average);
    call.inverse[c] = static_cast<Parameter>(inverse);
    call.running_mean[c] =
        static_cast<Parameter>((1 - momentum) * static_cast<double>(call.running_mean[c]) + momentum * average);
    call.running_variance[c] = static_cast<Parameter>((1 - momentum) * static_cast<double>(call.running_variance[c]) +
                                                      momentum * variance * (n > 1 ? n / (n - 1) : 1));
  }
  /// The running ones.
  SKEIN_HOST_DEVICE void operator()(long c) const {
    if (c >= channels) return gap(c);
    set(c, static_cast<double>(call.running_mean[c]),
        1 / std::sqrt(static_cast<double>(call.running_variance[c]) + call.epsilon));
  }

 private:
  constexpr void gap(long c) const { to.mean[c] = to.scale[c] = to.shift[c] = 0; }
  constexpr void set(long c, double average, double inverse) const {
    const double weight = static_cast<double>(call.weight[c]);
    to.mean[c] = static_cast<Parameter>(average);
    to.scale[c] = static_cast<Parameter>(inverse * weight);
    to.shift[c] = static_cast<Parameter>(static_cast<double>(call.bias[c]) +
                                         (static_cast<double>(to.mean[c]) - average) * inverse * weight);
  }
};

/// y = (x - mean) scale + shift, rectified where asked for; gaps zero.
template <class Value, class Parameter> struct Normalize {
  static constexpr int widest = cuda::pack_width<Value>;
  BatchNormCall<Value, Parameter> call;
  Coefficients<Parameter> of;
  long channels;
  template <int W> struct Column {
    cuda::Pack<Parameter, W> mean, scale, shift;
    int count;  // of channels; what follows are gaps
  };
  bool aligned() const { return cuda::aligned_16(call.x, call.y); }
  template <int W> SKEIN_HOST_DEVICE Column<W> column(long c) const {
    return {cuda::load<W>(of.mean + c), cuda::load<W>(of.scale + c), cuda::load<W>(of.shift + c),
            static_cast<int>(channels - c < W ? channels - c : W)};
  }
  template <int W> SKEIN_HOST_DEVICE cuda::Pack<Value, W> load(long i) const { return cuda::load<W>(call.x + i); }
  template <int W> SKEIN_HOST_DEVICE void store(long i, const Column<W>& c, const cuda::Pack<Value, W>& x) const {
    cuda::Pack<Value, W> out;
    for (int k = 0; k < W; ++k) {
      Parameter y = 0;
      if (k < c.count) {
        y = (static_cast<Parameter>(x.value[k]) - c.mean.value[k]) * c.scale.value[k] + c.shift.value[k];
        if (call.has_relu && y < 0) y = 0;  // a NaN stays one
      }
      out.value[k] = static_cast<Value>(y);
    }
    cuda::store(call.y + i, out);
  }
};

/// Gradients of weight and bias, and dx = scale dy + slope (x - mean) + shift.
template <class Value, class Parameter> struct Derivatives {
  BatchNormCall<Value, Parameter> call;
  Coefficients<Parameter> to;  // mean holds the slope here
  long channels, rows;
  bool adds, makes;  // the gradients; the coefficients
  SKEIN_HOST_DEVICE void operator()(long c, const TwoSums& s) const { of(c, s, static_cast<double>(rows)); }
  SKEIN_HOST_DEVICE void of(long c, const TwoSums& s, double rows_of_all) const {
    if (c >= channels) return gap(c);
    const double inverse = call.training ? static_cast<double>(call.inverse[c])
                                         : 1 / std::sqrt(static_cast<double>(call.running_variance[c]) + call.epsilon);
    if (adds) {
      call.dweight[c] += static_cast<Parameter>(s.second * inverse);
      call.dbias[c] += static_cast<Parameter>(s.first);
    }
    if (!makes) return;
    const double n = rows_of_all > 0 ? rows_of_all : 1, scale = inverse * static_cast<double>(call.weight[c]);
    to.scale[c] = static_cast<Parameter>(scale);
    to.mean[c] = static_cast<Parameter>(call.training ? -scale * inverse * inverse * s.second / n
                                                      : 0);  // running statistics do not follow x
    to.shift[c] = static_cast<Parameter>(call.training ? -scale * s.first / n : 0);
  }

 private:
  constexpr void gap(long c) const {
    if (makes) to.mean[c] = to.scale[c] = to.shift[c] = 0;
  }
};
/// Both of what a rank does with its own sums before they are added up.
template <class Value, class Parameter> struct DerivativesAndSums {
  Derivatives<Value, Parameter> derivatives;
  StoreSums store;
  SKEIN_HOST_DEVICE void operator()(long c, const TwoSums& s) const {
    derivatives(c, s);
    store(c, s);
  }
};

template <class Value, class Parameter> struct InputGradient {
  static constexpr int widest = cuda::pack_width<Value>;
  BatchNormCall<Value, Parameter> call;
  Coefficients<Parameter> of;
  long channels;
  template <int W> struct Column {
    cuda::Pack<Parameter, W> mean, scale, slope, shift;
    int count;
  };
  bool aligned() const { return backward_aligned(call) && cuda::aligned_16(call.dx); }
  template <int W> SKEIN_HOST_DEVICE Column<W> column(long c) const {
    Column<W> r{{},
                cuda::load<W>(of.scale + c),
                cuda::load<W>(of.mean + c),
                cuda::load<W>(of.shift + c),
                static_cast<int>(channels - c < W ? channels - c : W)};
    for (int k = 0; k < r.count; ++k) r.mean.value[k] = (call.training ? call.mean : call.running_mean)[c + k];
    return r;
  }
  template <int W> SKEIN_HOST_DEVICE BackwardPack<Value, W> load(long i) const { return BackwardPack<Value, W>::load(call, i); }
  template <int W> SKEIN_HOST_DEVICE void store(long i, const Column<W>& c, const BackwardPack<Value, W>& in) const {
    cuda::Pack<Value, W> out;
    for (int k = 0; k < W; ++k) {
      Parameter d = 0;
      if (k < c.count) {
        const Parameter g =
            call.has_relu && !(static_cast<Parameter>(in.y.value[k]) > 0) ? Parameter(0) : static_cast<Parameter>(in.dy.value[k]);
        d = c.scale.value[k] * g + c.slope.value[k] * (static_cast<Parameter>(in.x.value[k]) - c.mean.value[k]) +
            c.shift.value[k];
      }
      out.value[k] = static_cast<Value>(d);
    }
    cuda::store(call.dx + i, out);
  }
};

/// What cuDNN made of the gradients of weight and bias, added to those that were there.
template <class Parameter> struct AddParameterGradients {
  const Parameter *weight, *bias;
  Parameter *dweight, *dbias;
  constexpr void operator()(long c) const {
    dweight[c] += weight[c];
    dbias[c] += bias[c];
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::kernel
