// SPDX-License-Identifier: Apache-2.0
// Layer normalisation on the GPU. Forward and the gradient of x: one warp a row, 16 bytes a lane where rows are aligned (plainly:
// one value). The gradients of weight and bias: sums over columns in two passes, parts of the rows first, in the same order in
// every run.
#pragma once
#include <algorithm>
#include <cmath>

#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "../normalization.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// a + b.
struct Plus {
  template <class T> constexpr T operator()(const T& a, const T& b) const { return a + b; }
};

/// The first `count` of W values, zeros behind them: the end of an array that has no gaps.
template <int W, class T> SKEIN_HOST_DEVICE Pack<T, W> load_some(const T* from, long count) {
  if (count >= W) return load<W>(from);
  Pack<T, W> p{};
  for (int k = 0; k < count; ++k) p.value[k] = from[k];
  return p;
}

/// y = (x - mean) inverse weight + bias for one row, W values a lane at a time; gaps zero. Keeps mean and inverse.
template <class Scalar, class Value, int W = 1> struct RowNormalize {
  RowShape s;
  const Value* x;
  const Scalar *weight, *bias;
  double epsilon;
  Value* y;
  Scalar* saved_for_backward;
  template <class Lanes> constexpr void operator()(long row, Lanes lanes) const {
    const Value* in = x + row * s.pitch;
    Value* out = y + row * s.pitch;
    const long first = 1L * lanes.index * W, step = 1L * lanes.count * W;
    const Scalar one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
    Scalar total = 0, squares = 0;
    for (long c = first; c < s.n; c += step) {
      const auto v = load<W>(in + c);
      for (int k = 0; k < W && c + k < s.n; ++k) total += static_cast<Scalar>(v.value[k]);
    }
    const Scalar mean = lanes.reduce(total, Plus{}) * one_of_n;
    for (long c = first; c < s.n; c += step) {
      const auto v = load<W>(in + c);
      for (int k = 0; k < W && c + k < s.n; ++k) {
        const Scalar d = static_cast<Scalar>(v.value[k]) - mean;
        squares += d * d;
      }
    }
    const Scalar inverse =
        static_cast<Scalar>(1 / std::sqrt(static_cast<double>(lanes.reduce(squares, Plus{}) * one_of_n) + epsilon));
    for (long c = first; c < s.pitch; c += step) {
      auto v = load<W>(in + c);
      const auto w = load_some<W>(weight + c, s.n - c), b = load_some<W>(bias + c, s.n - c);
      for (int k = 0; k < W; ++k)
        v.value[k] = static_cast<Value>(c + k < s.n ? (static_cast<Scalar>(v.value[k]) - mean) * inverse * w.value[k] + b.value[k]
                                                    : Scalar(0));
      store(out + c, v);
    }
    if (lanes.index == 0) {
      saved_for_backward[2 * row] = mean;
      saved_for_backward[2 * row + 1] = inverse;
    }
  }
};

/// dx of one row from dy and what forward kept, W values a lane at a time; gaps zero.
template <class Scalar, class Value, int W = 1> struct RowNormalizeBackward {
  RowShape s;
  const Value *x, *dy;
  const Scalar *weight, *saved_for_backward;
  Value* dx;
  template <class Lanes> constexpr void operator()(long row, Lanes lanes) const {
    const Value* in = x + row * s.pitch;
    const Value* g = dy + row * s.pitch;
    Value* out = dx + row * s.pitch;
    const long first = 1L * lanes.index * W, step = 1L * lanes.count * W;
    const Scalar mean = saved_for_backward[2 * row], inverse = saved_for_backward[2 * row + 1],
                 one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
    Scalar sum = 0, product = 0;
    for (long c = first; c < s.n; c += step) {
      const auto v = load<W>(in + c), d = load<W>(g + c);
      const auto w = load_some<W>(weight + c, s.n - c);
      for (int k = 0; k < W && c + k < s.n; ++k) {
        const Scalar scaled = static_cast<Scalar>(d.value[k]) * w.value[k];
        sum += scaled;
        product += scaled * ((static_cast<Scalar>(v.value[k]) - mean) * inverse);
      }
    }
    const Scalar average = lanes.reduce(sum, Plus{}) * one_of_n, along = lanes.reduce(product, Plus{}) * one_of_n;
    for (long c = first; c < s.pitch; c += step) {
      const auto v = load<W>(in + c);
      auto d = load<W>(g + c);
      const auto w = load_some<W>(weight + c, s.n - c);
      for (int k = 0; k < W; ++k)
        d.value[k] = static_cast<Value>(c + k < s.n ? inverse * (static_cast<Scalar>(d.value[k]) * w.value[k] - average -
                                                                 (static_cast<Scalar>(v.value[k]) - mean) * inverse * along)
                                                    : Scalar(0));
      store(out + c, d);
    }
  }
};

/// Part p of the rows, column c: sums of dy times the normalised x, and of dy. Index p n + c.
template <class Scalar, class Value> struct NormalizeColumns {
  RowShape s;
  const Value *x, *dy;
  const Scalar* saved_for_backward;
  long rows_a_part;
  Scalar* partial;  // (parts, 2, n)
  constexpr void operator()(long index) const {
    const long part = quotient(index, s.n), c = index - part * s.n;
    const long begin = part * rows_a_part, end = begin + rows_a_part < s.rows ? begin + rows_a_part : s.rows;
    Scalar product = 0, sum = 0;
    for (long r = begin; r < end; ++r) {
      const Scalar g = static_cast<Scalar>(dy[r * s.pitch + c]);
      product += g * ((static_cast<Scalar>(x[r * s.pitch + c]) - saved_for_backward[2 * r]) * saved_for_backward[2 * r + 1]);
      sum += g;
    }
    partial[2 * part * s.n + c] = product;
    partial[(2 * part + 1) * s.n + c] = sum;
  }
};

/// Adds up the parts of value i of (2, n): dweight, then dbias.
template <class Scalar> struct AddColumnParts {
  long n, parts;
  const Scalar* partial;
  Scalar *dweight, *dbias;
  constexpr void operator()(long i) const {
    Scalar sum = 0;
    for (long p = 0; p < parts; ++p) sum += partial[2 * p * n + i];
    if (i < n) dweight[i] += sum;
    else dbias[i - n] += sum;
  }
};

/// The same, where the lanes of a warp share the parts of a value: few columns are few threads.
template <class Scalar> struct JoinColumnParts {
  long n, parts;
  const Scalar* partial;
  Scalar *dweight, *dbias;
  template <class Lanes> constexpr void operator()(long i, Lanes lanes) const {
    Scalar sum = 0;
    for (long p = lanes.index; p < parts; p += lanes.count) sum += partial[2 * p * n + i];
    sum = lanes.reduce(sum, Plus{});
    if (lanes.index != 0) return;
    if (i < n) dweight[i] += sum;
    else dbias[i - n] += sum;
  }
};

/// Rows that one thread adds up: enough threads to fill a GPU, at most 256 parts.
constexpr long rows_a_part(const RowShape& s) {
  const long least = (s.rows + 255) / 256, wanted = s.rows * s.n / 65536;
  return std::max({least, std::min(wanted, 256L), 1L});
}
/// Parts of the rows in the sums over columns.
constexpr long parts_of(const RowShape& s) { return (s.rows + rows_a_part(s) - 1) / rows_a_part(s); }
}  // namespace cuda

template <> struct RowNormalizeKernels<Cuda> {
  template <class Scalar, class Value> static void forward(const RowShape& s, const Value* x, const Scalar* weight,
                                                           const Scalar* bias, double epsilon, Value* y,
                                                           Scalar* saved_for_backward) {
    if (constexpr int w = cuda::pack_width<Value>; packs<w>(s, x, y, weight, bias))
      skein::cuda::for_each_row(s.rows, cuda::RowNormalize<Scalar, Value, w>{s, x, weight, bias, epsilon, y, saved_for_backward});
    else skein::cuda::for_each_row(s.rows, cuda::RowNormalize<Scalar, Value>{s, x, weight, bias, epsilon, y, saved_for_backward});
  }
  template <class Scalar, class Value> static void backward(const RowShape& s, const Value* x, const Value* dy,
                                                            const Scalar* weight, const Scalar* saved_for_backward, Value* dx,
                                                            Scalar* dweight, Scalar* dbias, Scalar*) {
    if (s.rows <= 0) return;
    const long rows = cuda::rows_a_part(s), parts = cuda::parts_of(s);
    Scalar* partial = static_cast<Scalar*>(skein::cuda::workspace().get(bytes(s, sizeof(Scalar))));
    skein::cuda::for_each(parts * s.n, cuda::NormalizeColumns<Scalar, Value>{s, x, dy, saved_for_backward, rows, partial});
    if (skein::cuda::plain_kernels())
      skein::cuda::for_each(2 * s.n, cuda::AddColumnParts<Scalar>{s.n, parts, partial, dweight, dbias});
    else skein::cuda::for_each_row(2 * s.n, cuda::JoinColumnParts<Scalar>{s.n, parts, partial, dweight, dbias});
    if (!dx) return;
    if (constexpr int w = cuda::pack_width<Value>; packs<w>(s, x, dy, dx, weight))
      skein::cuda::for_each_row(s.rows, cuda::RowNormalizeBackward<Scalar, Value, w>{s, x, dy, weight, saved_for_backward, dx});
    else skein::cuda::for_each_row(s.rows, cuda::RowNormalizeBackward<Scalar, Value>{s, x, dy, weight, saved_for_backward, dx});
  }
  static void prepare(const RowShape& s, std::size_t size) {
    if (s.rows > 0) skein::cuda::workspace().reserve(bytes(s, size));
  }

 private:
  /// Do packs of W lie in all arrays as wide ones need it?
  template <int W, class... T> static bool packs(const RowShape& s, const T*... arrays) {
    return W > 1 && !skein::cuda::plain_kernels() && s.pitch % W == 0 &&
           (... && (reinterpret_cast<std::uintptr_t>(arrays) % (sizeof(T) * W) == 0));
  }
  static std::size_t bytes(const RowShape& s, std::size_t size) {
    return static_cast<std::size_t>(2 * cuda::parts_of(s) * s.n) * size;
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
