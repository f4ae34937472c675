// SPDX-License-Identifier: Apache-2.0
// Pooling on the GPU by own kernels, one thread a value, neighbours on neighbouring channels. Not cuDNN's: its backward pass
// reads x and y again, which ours does not keep (one byte an output tells the winner; an average needs nothing); which of equal
// values wins is not specified there, and overlapping windows are summed by atomics. Here each input gathers from the windows
// that it lies in: the same bits in every run, and for maxima and their gradients those of the Cpu.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../pool2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace kernel {

/// Index i of a dense batch of images of this many values a row and column: its pixel and channel.
struct ImagePlace {
  long sample;
  int row, column, channel;
  /// 32-bit divisions, several times cheaper, where the index allows.
  constexpr ImagePlace(long i, int height, int width, int channels) : sample(0), row(0), column(0), channel(0) {
    if (i <= 0xffffffffL)
      split(static_cast<unsigned>(i), static_cast<unsigned>(height), static_cast<unsigned>(width),
            static_cast<unsigned>(channels));
    else split(i, static_cast<long>(height), static_cast<long>(width), static_cast<long>(channels));
  }

 private:
  template <class Index> constexpr void split(Index i, Index height, Index width, Index channels) {
    const Index pixel = i / channels, line = pixel / width, image = line / height;
    channel = static_cast<int>(i - pixel * channels);
    column = static_cast<int>(pixel - line * width);
    row = static_cast<int>(line - image * height);
    sample = static_cast<long>(image);
  }
};

template <class Value> struct MaxPool {
  Pool2dGeometry g;
  const Value* x;
  Value* y;
  ArgMax* winners;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.out_height(), g.out_width(), g.channels);
    const int top = p.row * g.stride - g.padding, left = p.column * g.stride - g.padding;
    const Value* image = x + p.sample * g.in_count() + p.channel;
    Value best{};
    int arg_max = -1;
    for (int ky = top < 0 ? -top : 0; ky < g.kernel && top + ky < g.height; ++ky)
      for (int kx = left < 0 ? -left : 0; kx < g.kernel && left + kx < g.width; ++kx) {
        const Value v = image[(1L * (top + ky) * g.width + left + kx) * g.channels];
        if (arg_max < 0 || v > best || v != v) best = v, arg_max = ky * g.kernel + kx;
      }
    y[i] = best;
    winners[i] = static_cast<ArgMax>(arg_max);
  }
};

/// The rows (or columns) of outputs whose windows reach input place `at`.
struct Reach {
  int first, last;
  constexpr Reach(int at, int outputs, const Pool2dGeometry& g) : first(0), last(0) {
    const int from = at + g.padding - g.kernel + 1, to = (at + g.padding) / g.stride;
    first = from > 0 ? (from + g.stride - 1) / g.stride : 0;
    last = to < outputs ? to : outputs - 1;
  }
};

template <class Value, class Sum> struct MaxPoolGradient {
  Pool2dGeometry g;
  const Value* dy;
  const ArgMax* winners;
  Value* dx;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.height, g.width, g.channels);
    const int width = g.out_width();
    const Reach rows(p.row, g.out_height(), g), columns(p.column, width, g);
    const long image = p.sample * g.out_count() + p.channel;
    Sum sum = 0;
    for (int r = rows.first; r <= rows.last; ++r)
      for (int c = columns.first; c <= columns.last; ++c) {
        const long o = image + (1L * r * width + c) * g.channels;
        const int place = (p.row + g.padding - r * g.stride) * g.kernel + p.column + g.padding - c * g.stride;
        if (winners[o] == place) sum += static_cast<Sum>(dy[o]);
      }
    dx[i] = static_cast<Value>(sum);
  }
};

template <class Value, class Sum> struct AveragePool {
  Pool2dGeometry g;
  const Value* x;
  Value* y;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.out_height(), g.out_width(), g.channels);
    const int top = p.row * g.stride - g.padding, left = p.column * g.stride - g.padding;
    const Value* image = x + p.sample * g.in_count() + p.channel;
    Sum sum = 0;
    for (int ky = top < 0 ? -top : 0; ky < g.kernel && top + ky < g.height; ++ky)
      for (int kx = left < 0 ? -left : 0; kx < g.kernel && left + kx < g.width; ++kx)
        sum += static_cast<Sum>(image[(1L * (top + ky) * g.width + left + kx) * g.channels]);
    y[i] = static_cast<Value>(sum * (Sum(1) / static_cast<Sum>(g.kernel * g.kernel)));
  }
};
template <class Value, class Sum> struct AveragePoolGradient {
  Pool2dGeometry g;
  const Value* dy;
  Value* dx;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.height, g.width, g.channels);
    const int width = g.out_width();
    const Reach rows(p.row, g.out_height(), g), columns(p.column, width, g);
    const long image = p.sample * g.out_count() + p.channel;
    const Sum scale = Sum(1) / static_cast<Sum>(g.kernel * g.kernel);
    Sum sum = 0;
    for (int r = rows.first; r <= rows.last; ++r)
      for (int c = columns.first; c <= columns.last; ++c)
        sum += static_cast<Sum>(dy[image + (1L * r * width + c) * g.channels]) * scale;
    dx[i] = static_cast<Value>(sum);
  }
};

/// y: (batch, pitch), its gaps zero.
template <class Value, class Sum> struct GlobalAverage {
  long pixels, channels, pitch;
  const Value* x;
  Value* y;
  constexpr void operator()(long i) const {
    const long n = i / pitch, c = i - n * pitch;
    Sum sum = 0;
    if (c < channels)
      for (long p = 0; p < pixels; ++p) sum += static_cast<Sum>(x[(n * pixels + p) * channels + c]);
    y[i] = static_cast<Value>(sum * (Sum(1) / static_cast<Sum>(pixels)));
  }
};
template <class Value, class Sum> struct GlobalAverageGradient {
  long pixels, channels, pitch;
  const Value* dy;
  Value* dx;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, 1, static_cast<int>(pixels), static_cast<int>(channels));
    dx[i] = static_cast<Value>(static_cast<Sum>(dy[p.sample * pitch + p.channel]) * (Sum(1) / static_cast<Sum>(pixels)));
  }
};

}  // namespace kernel

template <> struct PoolKernels<Cuda> {
  template <class T> using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

  template <class T> static void max_forward(const Pool2dGeometry& g, long batch, const T* x, T* y, ArgMax* winners) {
    skein::cuda::for_each(batch * g.out_count(), kernel::MaxPool<T>{g, x, y, winners});
  }
  template <class T> static void max_backward(const Pool2dGeometry& g, long batch, const T* dy, const ArgMax* winners, T* dx) {
    skein::cuda::for_each(batch * g.in_count(), kernel::MaxPoolGradient<T, Sum<T>>{g, dy, winners, dx});
  }
  template <class T> static void average_forward(const Pool2dGeometry& g, long batch, const T* x, T* y) {
    skein::cuda::for_each(batch * g.out_count(), kernel::AveragePool<T, Sum<T>>{g, x, y});
  }
  template <class T> static void average_backward(const Pool2dGeometry& g, long batch, const T* dy, T* dx) {
    skein::cuda::for_each(batch * g.in_count(), kernel::AveragePoolGradient<T, Sum<T>>{g, dy, dx});
  }
  template <class T> static void global_forward(long pixels, long channels, long batch, const T* x, T* y, long pitch) {
    skein::cuda::for_each(batch * pitch, kernel::GlobalAverage<T, Sum<T>>{pixels, channels, pitch, x, y});
  }
  template <class T> static void global_backward(long pixels, long channels, long batch, const T* dy, long pitch, T* dx) {
    skein::cuda::for_each(batch * pixels * channels, kernel::GlobalAverageGradient<T, Sum<T>>{pixels, channels, pitch, dy, dx});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
