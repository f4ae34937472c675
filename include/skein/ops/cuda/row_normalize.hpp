// SPDX-License-Identifier: Apache-2.0
// Layer and group normalisation on the GPU. Forward and the gradient of x: one warp a row, 16 bytes a lane where rows are aligned
// (plainly: one value). The gradients of weight and bias: sums over columns in two passes, parts of the rows first, in the same
// order in every run. Shape: RowShape, or GroupShape, whose rows lie in pieces.
//
//     s the shape: rows of n values, m the same values, a column for each weight; x, y, dx, dy of that shape; r a row, c a value
//     of it; W values a lane, k one of them; C what is taken away; T, Scalar, Value types of values, of statistics, of x and y
#pragma once
#include <algorithm>
#include <cmath>

#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "../group_normalization.hpp"
#include "../normalization.hpp"
#include "elementwise.hpp"
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
template <class Scalar, class Value, int W = 1, class Shape = RowShape, Center C = Center::mean> struct RowNormalize {
  Shape s;
  const Value* x;
  const Scalar *weight, *bias;
  double epsilon;
  Value* y;
  Scalar* saved_for_backward;
  template <class Lanes> constexpr void operator()(long row, Lanes lanes) const {
    constexpr long kept = row_statistics<C>;
    const long first = 1L * lanes.index * W, step = 1L * lanes.count * W;
    const auto [mean, variance] = moments(row, lanes);
    const Scalar inverse = static_cast<Scalar>(1 / std::sqrt(static_cast<double>(variance) + epsilon));
    for (long c = first; c < s.stored(); c += step) {
      auto v = load<W>(x + s.at(row, c));
      const auto w = load_some<W>(weight + s.column(row, c), s.n - c);
      Pack<Scalar, W> b{};
      if constexpr (C == Center::mean) b = load_some<W>(bias + s.column(row, c), s.n - c);
      for (int k = 0; k < W; ++k)
        v.value[k] = static_cast<Value>(c + k < s.n ? (static_cast<Scalar>(v.value[k]) - mean) * inverse * w.value[k] + b.value[k]
                                                    : Scalar(0));
      store(y + s.at(row, c), v);
    }
    if (lanes.index == 0) {
      if constexpr (C == Center::mean) saved_for_backward[kept * row] = mean;
      saved_for_backward[kept * row + kept - 1] = inverse;
    }
  }

 private:
  struct Moments {
    Scalar mean, variance;
  };
  template <class Lanes> constexpr Moments moments(long row, Lanes lanes) const {
    const long first = 1L * lanes.index * W, step = 1L * lanes.count * W;
    const Scalar one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
    Scalar mean = 0, squares = 0, rests = 0;
    if constexpr (C == Center::mean) {
      Scalar total = 0;
      for (long c = first; c < s.n; c += step) {
        const auto v = load<W>(x + s.at(row, c));
        for (int k = 0; k < W && c + k < s.n; ++k) total += static_cast<Scalar>(v.value[k]);
      }
      mean = lanes.reduce(total, Plus{}) * one_of_n;
    }
    for (long c = first; c < s.n; c += step) {
      const auto v = load<W>(x + s.at(row, c));
      for (int k = 0; k < W && c + k < s.n; ++k) {
        const Scalar d = static_cast<Scalar>(v.value[k]) - mean;
        squares += d * d;
        rests += d;
      }
    }
    Scalar variance = lanes.reduce(squares, Plus{}) * one_of_n;
    if constexpr (C == Center::mean) {  // what the sum's rounding took from the mean: of large values more than epsilon's root
      const Scalar rest = lanes.reduce(rests, Plus{}) * one_of_n;
      mean += rest;
      variance -= rest * rest;
      if (variance < 0) variance = 0;
    }
    return {mean, variance};
  }
};

/// dx of one row from dy and what forward kept, W values a lane at a time; gaps zero.
template <class Scalar, class Value, int W = 1, class Shape = RowShape, Center C = Center::mean> struct RowNormalizeBackward {
  Shape s;
  const Value *x, *dy;
  const Scalar *weight, *saved_for_backward;
  Value* dx;
  template <class Lanes> constexpr void operator()(long row, Lanes lanes) const {
    constexpr long kept = row_statistics<C>;
    const long first = 1L * lanes.index * W, step = 1L * lanes.count * W;
    const Scalar mean = C == Center::mean ? saved_for_backward[kept * row] : Scalar(0),
                 inverse = saved_for_backward[kept * row + kept - 1], one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
    Scalar sum = 0, product = 0;
    for (long c = first; c < s.n; c += step) {
      const auto v = load<W>(x + s.at(row, c)), d = load<W>(dy + s.at(row, c));
      const auto w = load_some<W>(weight + s.column(row, c), s.n - c);
      for (int k = 0; k < W && c + k < s.n; ++k) {
        const Scalar scaled = static_cast<Scalar>(d.value[k]) * w.value[k];
        sum += scaled;
        product += scaled * ((static_cast<Scalar>(v.value[k]) - mean) * inverse);
      }
    }
    const Scalar average = C == Center::mean ? lanes.reduce(sum, Plus{}) * one_of_n : Scalar(0),
                 along = lanes.reduce(product, Plus{}) * one_of_n;
    for (long c = first; c < s.stored(); c += step) {
      const auto v = load<W>(x + s.at(row, c));
      auto d = load<W>(dy + s.at(row, c));
      const auto w = load_some<W>(weight + s.column(row, c), s.n - c);
      for (int k = 0; k < W; ++k)
        d.value[k] = static_cast<Value>(c + k < s.n ? inverse * (static_cast<Scalar>(d.value[k]) * w.value[k] - average -
                                                                 (static_cast<Scalar>(v.value[k]) - mean) * inverse * along)
                                                    : Scalar(0));
      store(dx + s.at(row, c), d);
    }
  }
};

/// Part p of the rows of the matrix m, column c: sums of dy times the normalised x, and of dy. Index p m.n + c.
template <class Scalar, class Value, class Shape = RowShape, Center C = Center::mean> struct NormalizeColumns {
  Shape s;
  RowShape m;  // s.matrix()
  const Value *x, *dy;
  const Scalar* saved_for_backward;
  long rows_a_part;
  Scalar* partial;  // (parts, 2, m.n)
  constexpr void operator()(long index) const {
    constexpr long kept = row_statistics<C>;
    const long part = quotient(index, m.n), c = index - part * m.n;
    const long begin = part * rows_a_part, end = begin + rows_a_part < m.rows ? begin + rows_a_part : m.rows;
    Scalar product = 0, sum = 0;
    for (long r = begin; r < end; ++r) {
      const Scalar g = static_cast<Scalar>(dy[m.at(r, c)]);
      const Scalar* const of_row = saved_for_backward + kept * s.row_of(r, c);
      const Scalar mean = C == Center::mean ? of_row[0] : Scalar(0);
      product += g * ((static_cast<Scalar>(x[m.at(r, c)]) - mean) * of_row[kept - 1]);
      sum += g;
    }
    partial[2 * part * m.n + c] = product;
    partial[(2 * part + 1) * m.n + c] = sum;
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
    else if (dbias) dbias[i - n] += sum;
  }
};

/// Adds up such parts, where the lanes of a warp share those of a value: few columns are few threads.
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
    else if (dbias) dbias[i - n] += sum;
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
  template <Center C, class Shape, class Scalar, class Value>
  static void forward(const Shape& s, const Value* x, const Scalar* weight, const Scalar* bias, double epsilon, Value* y,
                      Scalar* saved_for_backward) {
    using cuda::RowNormalize;
    if (constexpr int w = cuda::pack_width<Value>; packs<w>(s, x, y, weight, bias))
      skein::cuda::for_each_row(s.rows,
                                RowNormalize<Scalar, Value, w, Shape, C>{s, x, weight, bias, epsilon, y, saved_for_backward});
    else
      skein::cuda::for_each_row(s.rows,
                                RowNormalize<Scalar, Value, 1, Shape, C>{s, x, weight, bias, epsilon, y, saved_for_backward});
  }
  template <Center C, class Shape, class Scalar, class Value>
  static void backward(const Shape& s, const Value* x, const Value* dy, const Scalar* weight, const Scalar* saved_for_backward,
                       Value* dx, Scalar* dweight, Scalar* dbias, Scalar*) {
    using cuda::RowNormalizeBackward;
    if (s.rows <= 0) return;
    const RowShape m = s.matrix();
    const long rows = cuda::rows_a_part(m), parts = cuda::parts_of(m);
    Scalar* partial = static_cast<Scalar*>(skein::cuda::workspace().get(bytes(m, sizeof(Scalar))));
    skein::cuda::for_each(parts * m.n,
                          cuda::NormalizeColumns<Scalar, Value, Shape, C>{s, m, x, dy, saved_for_backward, rows, partial});
    if (skein::cuda::plain_kernels())
      skein::cuda::for_each(2 * m.n, cuda::AddColumnParts<Scalar>{m.n, parts, partial, dweight, dbias});
    else skein::cuda::for_each_row(2 * m.n, cuda::JoinColumnParts<Scalar>{m.n, parts, partial, dweight, dbias});
    if (!dx) return;
    if (constexpr int w = cuda::pack_width<Value>; packs<w>(s, x, dy, dx, weight))
      skein::cuda::for_each_row(s.rows,
                                RowNormalizeBackward<Scalar, Value, w, Shape, C>{s, x, dy, weight, saved_for_backward, dx});
    else
      skein::cuda::for_each_row(s.rows,
                                RowNormalizeBackward<Scalar, Value, 1, Shape, C>{s, x, dy, weight, saved_for_backward, dx});
  }
  template <class Shape> static void prepare(const Shape& s, std::size_t size) {
    if (s.rows > 0) skein::cuda::workspace().reserve(bytes(s.matrix(), size));
  }

 private:
  /// Do packs of W lie in all arrays, and in each piece of a row, as wide ones need it?
  template <int W, class... T> static bool packs(const RowShape& s, const T*... arrays) {
    return W > 1 && !skein::cuda::plain_kernels() && s.pitch % W == 0 &&
           (... && (reinterpret_cast<std::uintptr_t>(arrays) % (sizeof(T) * W) == 0));
  }
  template <int W, class... T> static bool packs(const GroupShape& s, const T*... arrays) {
    return s.width() % W == 0 && packs<W>(RowShape{s.rows, s.n, s.pitch}, arrays...);
  }
  static std::size_t bytes(const RowShape& m, std::size_t size) {
    return static_cast<std::size_t>(2 * cuda::parts_of(m) * m.n) * size;
  }
};

template <> struct GroupNormalizeKernels<Cuda> {
  using Rows = RowNormalizeKernels<Cuda>;
  template <int Channels, int Groups, class Value, class Parameter>
  static void prepare(const GroupNormalizeCall<Value, Parameter>& c) {
    Rows::prepare(shape<Channels, Groups>(c), sizeof(Parameter));
  }
  template <int Channels, int Groups, class Value, class Parameter>
  static void forward(const GroupNormalizeCall<Value, Parameter>& c) {
    clear_gaps<Channels>(c, c.y);
    Rows::forward<Center::mean>(shape<Channels, Groups>(c), c.x, c.weight, c.bias, c.epsilon, c.y, c.saved_for_backward);
  }
  /// Adds to dweight and dbias; writes dx where it is not null.
  template <int Channels, int Groups, class Value, class Parameter>
  static void backward(const GroupNormalizeCall<Value, Parameter>& c) {
    if (c.dx) clear_gaps<Channels>(c, c.dx);
    Rows::backward<Center::mean>(shape<Channels, Groups>(c), c.x, c.dy, c.weight,
                                 static_cast<const Parameter*>(c.saved_for_backward), c.dx, c.dweight, c.dbias, c.workspace);
  }

 private:
  template <int Channels, int Groups, class Call> static GroupShape shape(const Call& c) {
    return {c.samples, c.pixels, Channels, Groups, c.pitch};
  }
  template <int Channels, class Call, class Value> static void clear_gaps(const Call& c, Value* to) {
    if (c.pixels * Channels < c.pitch) ElementwiseKernels<Cuda>::fill(to, Value(0), c.samples * c.pitch);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
