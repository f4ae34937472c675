// SPDX-License-Identifier: Apache-2.0
// Pooling on the GPU by own kernels, neighbouring threads on neighbouring channels, 16 bytes of them a thread where arrays are
// aligned (Width values; plainly 1). Not cuDNN's: its backward pass reads x and y again, which ours does not keep (one byte an
// output tells the winner; an average needs nothing); which of equal values wins is not specified there, and overlapping windows
// are summed by atomics. Here each input gathers from the windows that it lies in: the same bits in every run, and for maxima and
// their gradients those of the Cpu.
//
//     g the geometry; x images, y outputs, dx, dy their gradients; i an element (or pack) of what is written, p its place, n a
//     sample, c a channel or a column of outputs, r a row of outputs, kx, ky a place of the window, k a value of a pack; T the
//     type of values
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "../pool2d.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace kernel {

/// Index i of a dense batch of images of this many values (or packs) a row and column: its pixel and channel.
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

template <class Value, int Width> struct MaxPool {
  Pool2dGeometry g;
  const Value* x;
  Value* y;
  ArgMax* winners;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.out_height(), g.out_width(), g.channels / Width);
    const int top = p.row * g.stride - g.padding, left = p.column * g.stride - g.padding;
    const Value* image = x + p.sample * g.in_count() + p.channel * Width;
    cuda::Pack<Value, Width> best{};
    cuda::Pack<ArgMax, Width> winner{};
    bool first = true;
    for (int ky = top < 0 ? -top : 0; ky < g.kernel && top + ky < g.height; ++ky)
      for (int kx = left < 0 ? -left : 0; kx < g.kernel && left + kx < g.width; ++kx) {
        const auto in = cuda::load<Width>(image + (1L * (top + ky) * g.width + left + kx) * g.channels);
        for (int k = 0; k < Width; ++k) {
          const Value v = in.value[k];
          if (first || v > best.value[k] || v != v) best.value[k] = v, winner.value[k] = static_cast<ArgMax>(ky * g.kernel + kx);
        }
        first = false;
      }
    cuda::store(y + i * Width, best);
    cuda::store(winners + i * Width, winner);
  }
};

/// to = sums * factor, Width of them.
template <int Width, class Value, class Sum> SKEIN_HOST_DEVICE void put(Value* to, const Sum (&sums)[Width], Sum factor) {
  cuda::Pack<Value, Width> out;
  for (int k = 0; k < Width; ++k) out.value[k] = static_cast<Value>(sums[k] * factor);
  cuda::store(to, out);
}

/// The rows (or columns) of outputs whose windows reach input place `at`.
struct Reach {
  int first, last;
  constexpr Reach(int at, int outputs, const Pool2dGeometry& g) : first(0), last(0) {
    const int from = at + g.padding - g.kernel + 1, to = (at + g.padding) / g.stride;
    first = from > 0 ? (from + g.stride - 1) / g.stride : 0;
    last = to < outputs ? to : outputs - 1;
  }
};

template <class Value, class Sum, int Width> struct MaxPoolGradient {
  Pool2dGeometry g;
  const Value* dy;
  const ArgMax* winners;
  Value* dx;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.height, g.width, g.channels / Width);
    const int width = g.out_width();
    const Reach rows(p.row, g.out_height(), g), columns(p.column, width, g);
    const long image = p.sample * g.out_count() + p.channel * Width;
    Sum sum[Width] = {};
    for (int r = rows.first; r <= rows.last; ++r)
      for (int c = columns.first; c <= columns.last; ++c) {
        const long o = image + (1L * r * width + c) * g.channels;
        const int place = (p.row + g.padding - r * g.stride) * g.kernel + p.column + g.padding - c * g.stride;
        const auto winner = cuda::load<Width>(winners + o);
        const auto in = cuda::load<Width>(dy + o);
        for (int k = 0; k < Width; ++k)
          if (winner.value[k] == place) sum[k] += static_cast<Sum>(in.value[k]);
      }
    put<Width>(dx + i * Width, sum, Sum(1));
  }
};

template <class Value, class Sum, int Width> struct AveragePool {
  Pool2dGeometry g;
  const Value* x;
  Value* y;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.out_height(), g.out_width(), g.channels / Width);
    const int top = p.row * g.stride - g.padding, left = p.column * g.stride - g.padding;
    const Value* image = x + p.sample * g.in_count() + p.channel * Width;
    Sum sum[Width] = {};
    for (int ky = top < 0 ? -top : 0; ky < g.kernel && top + ky < g.height; ++ky)
      for (int kx = left < 0 ? -left : 0; kx < g.kernel && left + kx < g.width; ++kx) {
        const auto in = cuda::load<Width>(image + (1L * (top + ky) * g.width + left + kx) * g.channels);
        for (int k = 0; k < Width; ++k) sum[k] += static_cast<Sum>(in.value[k]);
      }
    put<Width>(y + i * Width, sum, Sum(1) / static_cast<Sum>(g.kernel * g.kernel));
  }
};
template <class Value, class Sum, int Width> struct AveragePoolGradient {
  Pool2dGeometry g;
  const Value* dy;
  Value* dx;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, g.height, g.width, g.channels / Width);
    const int width = g.out_width();
    const Reach rows(p.row, g.out_height(), g), columns(p.column, width, g);
    const long image = p.sample * g.out_count() + p.channel * Width;
    const Sum scale = Sum(1) / static_cast<Sum>(g.kernel * g.kernel);
    Sum sum[Width] = {};
    for (int r = rows.first; r <= rows.last; ++r)
      for (int c = columns.first; c <= columns.last; ++c) {
        const auto in = cuda::load<Width>(dy + image + (1L * r * width + c) * g.channels);
        for (int k = 0; k < Width; ++k) sum[k] += static_cast<Sum>(in.value[k]) * scale;
      }
    put<Width>(dx + i * Width, sum, Sum(1));
  }
};

/// y: (batch, pitch), its gaps zero.
template <class Value, class Sum, int Width> struct GlobalAverage {
  long pixels, channels, pitch;
  const Value* x;
  Value* y;
  constexpr void operator()(long i) const {
    const long n = i / (pitch / Width), c = (i - n * (pitch / Width)) * Width;
    Sum sum[Width] = {};
    for (long first = 0; first < pixels && c < channels; first += reference::average_block) {
      const long end = pixels - first < reference::average_block ? pixels : first + reference::average_block;
      Sum part[Width] = {};
      for (long pixel = first; pixel < end; ++pixel) {
        const auto in = cuda::load<Width>(x + (n * pixels + pixel) * channels + c);
        for (int k = 0; k < Width; ++k) part[k] += static_cast<Sum>(in.value[k]);
      }
      for (int k = 0; k < Width; ++k) sum[k] += part[k];
    }
    put<Width>(y + i * Width, sum, Sum(1) / static_cast<Sum>(pixels));
  }
};
template <class Value, class Sum, int Width> struct GlobalAverageGradient {
  long pixels, channels, pitch;
  const Value* dy;
  Value* dx;
  constexpr void operator()(long i) const {
    const ImagePlace p(i, 1, static_cast<int>(pixels), static_cast<int>(channels / Width));
    const auto in = cuda::load<Width>(dy + p.sample * pitch + p.channel * Width);
    Sum sum[Width] = {};
    for (int k = 0; k < Width; ++k) sum[k] = static_cast<Sum>(in.value[k]);
    put<Width>(dx + i * Width, sum, Sum(1) / static_cast<Sum>(pixels));
  }
};

}  // namespace kernel

template <> struct PoolKernels<Cuda> {
  template <class T> using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

  template <class T> static void max_forward(const Pool2dGeometry& g, long batch, const T* x, T* y, ArgMax* winners) {
    by_width<T>(g.channels, cuda::aligned_16(x, y, winners), [&]<int Width>() {
      skein::cuda::for_each(batch * g.out_count() / Width, kernel::MaxPool<T, Width>{g, x, y, winners});
    });
  }
  template <class T> static void max_backward(const Pool2dGeometry& g, long batch, const T* dy, const ArgMax* winners, T* dx) {
    by_width<T>(g.channels, cuda::aligned_16(dy, winners, dx), [&]<int Width>() {
      skein::cuda::for_each(batch * g.in_count() / Width, kernel::MaxPoolGradient<T, Sum<T>, Width>{g, dy, winners, dx});
    });
  }
  template <class T> static void average_forward(const Pool2dGeometry& g, long batch, const T* x, T* y) {
    by_width<T>(g.channels, cuda::aligned_16(x, y), [&]<int Width>() {
      skein::cuda::for_each(batch * g.out_count() / Width, kernel::AveragePool<T, Sum<T>, Width>{g, x, y});
    });
  }
  template <class T> static void average_backward(const Pool2dGeometry& g, long batch, const T* dy, T* dx) {
    by_width<T>(g.channels, cuda::aligned_16(dy, dx), [&]<int Width>() {
      skein::cuda::for_each(batch * g.in_count() / Width, kernel::AveragePoolGradient<T, Sum<T>, Width>{g, dy, dx});
    });
  }
  template <class T> static void global_forward(long pixels, long channels, long batch, const T* x, T* y, long pitch) {
    by_width<T>(channels | pitch, cuda::aligned_16(x, y), [&]<int Width>() {
      skein::cuda::for_each(batch * pitch / Width, kernel::GlobalAverage<T, Sum<T>, Width>{pixels, channels, pitch, x, y});
    });
  }
  template <class T> static void global_backward(long pixels, long channels, long batch, const T* dy, long pitch, T* dx) {
    by_width<T>(channels | pitch, cuda::aligned_16(dy, dx), [&]<int Width>() {
      skein::cuda::for_each(batch * pixels * channels / Width,
                            kernel::GlobalAverageGradient<T, Sum<T>, Width>{pixels, channels, pitch, dy, dx});
    });
  }

 private:
  /// launch<Width>(): of 16 bytes where they divide a pixel's channels and arrays are aligned, else of one value.
  template <class T, class Launch> static void by_width(long channels, bool aligned, Launch launch) {
    constexpr int widest = cuda::pack_width<T>;
    if (aligned && channels % widest == 0 && !skein::cuda::plain_kernels()) launch.template operator()<widest>();
    else launch.template operator()<1>();
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
