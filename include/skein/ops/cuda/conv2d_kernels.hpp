// SPDX-License-Identifier: Apache-2.0
// Own kernels of convolution on the GPU, as function objects. First those that go with cuDNN's: bias and ReLU behind the product.
// Then a whole convolution in plain loops, which reads the weight as it is stored: what runs where cuDNN has no deterministic
// kernel (it has none for NHWC images of doubles). Value: the type of images; Parameter: of weights and gradients; sums are taken
// in Sum.
//
//     g the geometry; x images, y outputs, dx, dy their gradients, dz the gradient in front of a ReLU, w weights; i an element of
//     what is written, c a channel, f a filter, o an output, kx, ky, kz a place of the window, ix, iy, iz a pixel of the input; W
//     values of a pack, k one of them
#pragma once
#include <type_traits>

#include "../../device/cuda/launch.hpp"
#include "../reference/conv2d.hpp"
#include "column_sums.hpp"
#include "row_strips.hpp"

namespace skein::inline SKEIN_ABI::ops::kernel {

template <class Value> using SumOf = std::conditional_t<std::is_same_v<Value, double>, double, float>;

// ---- beside cuDNN

/// The bias behind the packed filters, so that it has cuDNN's type and alignment.
template <class Value, class Parameter> struct PackBias {
  const Parameter* bias;
  Value* to;
  constexpr void operator()(long f) const { to[f] = static_cast<Value>(bias[f]); }
};

/// y = relu(y + bias), in place; either may be missing.
template <class Value, class Parameter> struct BiasRelu {
  static constexpr int widest = cuda::pack_width<Value>;
  Value* y;
  const Parameter* bias;
  bool has_relu;
  bool aligned() const { return cuda::aligned_16(y); }
  template <int W> SKEIN_HOST_DEVICE cuda::Pack<SumOf<Value>, W> column(long c) const {
    cuda::Pack<SumOf<Value>, W> b;
    for (int k = 0; k < W; ++k) b.value[k] = bias ? static_cast<SumOf<Value>>(bias[c + k]) : SumOf<Value>(0);
    return b;
  }
  template <int W> SKEIN_HOST_DEVICE cuda::Pack<Value, W> load(long i) const { return cuda::load<W>(y + i); }
  template <int W> SKEIN_HOST_DEVICE void store(long i, const cuda::Pack<SumOf<Value>, W>& b, cuda::Pack<Value, W> p) const {
    for (int k = 0; k < W; ++k) {
      SumOf<Value> v = static_cast<SumOf<Value>>(p.value[k]) + b.value[k];
      if (has_relu && v < 0) v = 0;  // a NaN stays one
      p.value[k] = static_cast<Value>(v);
    }
    cuda::store(y + i, p);
  }
};

/// One pass behind a ReLU: the gradient in front of it, and its sum for each filter.
template <class Value> struct RectifiedGradient {
  static constexpr int widest = cuda::pack_width<Value>;
  using Run = RunSums<Value>;
  const Value* dy;
  const Value* y;  // null: no ReLU, nothing is written
  Value* dz;
  template <int W> struct In { cuda::Pack<Value, W> dy, y; };
  bool aligned() const { return cuda::aligned_16(dy, y, y ? dz : nullptr); }
  template <int W> SKEIN_HOST_DEVICE In<W> load(long i) const {
    In<W> in;
    in.dy = cuda::load<W>(dy + i);
    if (y) in.y = cuda::load<W>(y + i);
    return in;
  }
  template <int W, class Sums> SKEIN_HOST_DEVICE void add(long i, long, In<W> in, Sums* sums) const {
    for (int k = 0; k < W; ++k) {
      if (y && !(static_cast<SumOf<Value>>(in.y.value[k]) > 0)) in.dy.value[k] = static_cast<Value>(0.0f);
      sums[k].first += static_cast<decltype(sums->first)>(in.dy.value[k]);
    }
    if (y) cuda::store(dz + i, in.dy);
  }
};
template <class Parameter> struct AddBiasGradient {
  Parameter* dbias;  // null: nobody wants it
  constexpr void operator()(long c, const TwoSums& sums) const {
    if (dbias) dbias[c] += static_cast<Parameter>(sums.first);
  }
};

// ---- in plain loops

/// Which pixel an output of a batch is.
struct OutputPlace {
  int column, row, slice;
  long sample;
  constexpr OutputPlace(const Conv2dGeometry& g, long pixel)
      : column(static_cast<int>(pixel % g.out_width())), row(static_cast<int>(pixel / g.out_width() % g.out_height())),
        slice(static_cast<int>(pixel / g.out_width() / g.out_height() % g.out_depth())), sample(pixel / g.out_pixels()) {}
};

template <class Value, class Parameter> struct PlainForward {
  Conv2dGeometry g;
  const Value* x;
  const Parameter* weight;
  const Parameter* bias;
  Value* y;
  bool has_relu;
  constexpr void operator()(long i) const {
    const int in = g.group_channels(), f = static_cast<int>(i % g.filters), group = f / g.group_filters();
    const OutputPlace o(g, i / g.filters);
    const Value* image = x + o.sample * g.in_count() + group * in;
    SumOf<Value> sum = bias ? static_cast<SumOf<Value>>(bias[f]) : SumOf<Value>(0);
    for (int kz = 0; kz < g.window_depth(); ++kz) {
      const int iz = g.in_slice(o.slice, kz);
      for (int ky = 0; iz >= 0 && ky < g.window_height(); ++ky) {
        const int iy = g.in_row(o.row, ky);
        for (int kx = 0; iy >= 0 && kx < g.kernel; ++kx) {
          const int ix = g.in_column(o.column, kx);
          if (ix < 0) continue;
          const Value* from = image + ((1L * iz * g.height + iy) * g.width + ix) * g.channels;
          const Parameter* w = weight + ((1L * kz * g.window_height() + ky) * g.kernel + kx) * in * g.weight_pitch() + f;
          for (int c = 0; c < in; ++c)
            sum += static_cast<SumOf<Value>>(from[c]) * static_cast<SumOf<Value>>(w[c * g.weight_pitch()]);
        }
      }
    }
    if (has_relu && sum < 0) sum = 0;
    y[i] = static_cast<Value>(sum);
  }
};

/// One input value: the outputs whose windows it lies in.
template <class Value, class Parameter> struct PlainInputGradient {
  Conv2dGeometry g;
  const Value* dy;
  const Parameter* weight;
  Value* dx;
  constexpr void operator()(long i) const {
    const int in = g.group_channels(), out = g.group_filters(), c = static_cast<int>(i % g.channels), group = c / in;
    const long pixel = i / g.channels, rows = pixel / g.width, slices = rows / g.height;
    const int ix = static_cast<int>(pixel % g.width), iy = static_cast<int>(rows % g.height),
              iz = static_cast<int>(slices % g.depth);
    const Value* image = dy + slices / g.depth * g.out_count() + group * out;
    SumOf<Value> sum = 0;
    for (int kz = 0; kz < g.window_depth(); ++kz) {
      const int slice = g.out_slice(iz, kz);
      for (int ky = 0; slice >= 0 && ky < g.window_height(); ++ky) {
        const int row = g.out_row(iy, ky);
        for (int kx = 0; row >= 0 && kx < g.kernel; ++kx) {
          const int column = g.out_column(ix, kx);
          if (column < 0) continue;
          const Value* from = image + ((1L * slice * g.out_height() + row) * g.out_width() + column) * g.filters;
          const long tap = (1L * kz * g.window_height() + ky) * g.kernel + kx;
          const Parameter* w = weight + (tap * in + (c - group * in)) * g.weight_pitch() + group * out;
          for (int f = 0; f < out; ++f) sum += static_cast<SumOf<Value>>(from[f]) * static_cast<SumOf<Value>>(w[f]);
        }
      }
    }
    dx[i] = static_cast<Value>(sum);
  }
};

/// One weight: the lanes share the output pixels of the batch.
template <class Value, class Parameter> struct PlainFilterGradient {
  Conv2dGeometry g;
  long batch;
  const Value* x;
  const Value* dy;
  Parameter* dweight;
  struct Plus {
    constexpr SumOf<Value> operator()(SumOf<Value> a, SumOf<Value> b) const { return a + b; }
  };
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long i, Lanes lanes) const {
    const int in = g.group_channels(), f = static_cast<int>(i % g.filters), group = f / g.group_filters();
    const long r = i / g.filters, tap = r / in;
    const int c = static_cast<int>(r % in), kx = static_cast<int>(tap % g.kernel),
              ky = static_cast<int>(tap / g.kernel % g.window_height()),
              kz = static_cast<int>(tap / g.kernel / g.window_height());
    const long pixels = batch * g.out_pixels();
    SumOf<Value> sum = 0;
    for (long p = lanes.index; p < pixels; p += Lanes::count) {
      const OutputPlace o(g, p);
      const int iz = g.in_slice(o.slice, kz), iy = g.in_row(o.row, ky), ix = g.in_column(o.column, kx);
      if (iz < 0 || iy < 0 || ix < 0) continue;
      const long at = ((1L * iz * g.height + iy) * g.width + ix) * g.channels + group * in + c;
      sum += static_cast<SumOf<Value>>(x[o.sample * g.in_count() + at]) * static_cast<SumOf<Value>>(dy[p * g.filters + f]);
    }
    sum = lanes.reduce(sum, Plus{});
    if (lanes.index == 0) dweight[r * g.weight_pitch() + f] += static_cast<Parameter>(sum);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::kernel
