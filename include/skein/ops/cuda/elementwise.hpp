// SPDX-License-Identifier: Apache-2.0
// Sums, copies and fills of plain arrays on the GPU. Copies are kernels like the others, so that they are
// launched, captured and replayed like them.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../elementwise.hpp"
#include "map.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// a + b.
struct Add {
  template <class T> constexpr T operator()(const T& a, const T& b) const { return a + b; }
};

/// Packs of Width columns; both pitches are multiples of it.
template <class Scalar, int Width> struct CopyRows {
  Scalar* y;
  long y_pitch;
  const Scalar* x;
  long x_pitch, columns, packs;  // packs a row
  constexpr void operator()(long index) const {
    const long row = quotient(index, packs), at = (index - row * packs) * Width;
    const Scalar* from = x + row * x_pitch + at;
    Scalar* to = y + row * y_pitch + at;
    if (at + Width <= columns) {
      store(to, load<Width>(from));
    } else {
      for (long k = 0; k < columns - at; ++k) to[k] = from[k];
    }
  }
};

/// y = value, Width values an index.
template <class Scalar, int Width> struct Fill {
  Scalar* y;
  Scalar value;
  long n;
  constexpr void operator()(long index) const {
    const long at = index * Width;
    if (at + Width <= n) {
      Pack<Scalar, Width> p{};
      for (int k = 0; k < Width; ++k) p.value[k] = value;
      store(y + at, p);
    } else {
      for (long i = at; i < n; ++i) y[i] = value;
    }
  }
};
}  // namespace cuda

template <> struct ElementwiseKernels<Cuda> {
  template <class Scalar> static void add(Scalar* y, const Scalar* a, const Scalar* b, long n) {
    MapKernels<Cuda>::zip(cuda::Add{}, n, a, b, y);
  }
  template <class Scalar> static void copy(Scalar* y, const Scalar* x, long n) { copy_rows(y, n, x, n, 1, n); }
  template <class Scalar> static void copy_rows(Scalar* y, long y_pitch, const Scalar* x, long x_pitch, long rows, long columns) {
    if (rows <= 0 || columns <= 0) return;
    if (columns == x_pitch && columns == y_pitch) columns = x_pitch = y_pitch = rows * columns, rows = 1;
    constexpr int width = cuda::pack_width<Scalar>;
    const bool whole = cuda::aligned_16(x, y) && (rows == 1 || (x_pitch % width == 0 && y_pitch % width == 0));
    const long packs = (columns + width - 1) / width;
    if (whole) skein::cuda::for_each(rows * packs, cuda::CopyRows<Scalar, width>{y, y_pitch, x, x_pitch, columns, packs});
    else skein::cuda::for_each(rows * columns, cuda::CopyRows<Scalar, 1>{y, y_pitch, x, x_pitch, columns, columns});
  }
  template <class Scalar> static void fill(Scalar* y, Scalar value, long n) {
    constexpr int width = cuda::pack_width<Scalar>;
    if (cuda::aligned_16(y)) skein::cuda::for_each((n + width - 1) / width, cuda::Fill<Scalar, width>{y, value, n});
    else skein::cuda::for_each(n, cuda::Fill<Scalar, 1>{y, value, n});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
