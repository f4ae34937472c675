// SPDX-License-Identifier: Apache-2.0
// Conversions between float, double and the 16-bit types on the GPU: 16 bytes of the wider type a thread where arrays are
// aligned.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../convert.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// y = x for `packs` packs a row; both pitches are multiples of Width, or there is one row.
template <class To, class From, int Width> struct Convert {
  To* y;
  long y_pitch;
  const From* x;
  long x_pitch, columns, packs;
  constexpr void operator()(long index) const {
    const long row = quotient(index, packs), at = (index - row * packs) * Width;
    const From* from = x + row * x_pitch + at;
    To* to = y + row * y_pitch + at;
    if (at + Width <= columns) {
      const Pack<From, Width> p = load<Width>(from);
      Pack<To, Width> q{};
      for (int k = 0; k < Width; ++k) q.value[k] = static_cast<To>(p.value[k]);
      store(to, q);
    } else {
      for (long k = 0; k < columns - at; ++k) to[k] = static_cast<To>(from[k]);
    }
  }
};
}  // namespace cuda

template <> struct ConvertKernels<Cuda> {
  template <class To, class From> static void run(To* y, const From* x, long n) { rows(y, n, x, n, 1, n); }
  template <class To, class From> static void rows(To* y, long y_pitch, const From* x, long x_pitch, long rows, long columns) {
    if (rows <= 0 || columns <= 0) return;
    constexpr int widest =
        sizeof(To) > sizeof(From) ? cuda::pack_width<To> : cuda::pack_width<From>;  // 16 bytes of the wider one
    const bool aligned = cuda::aligned_16(x, y) && (rows == 1 || (x_pitch % widest == 0 && y_pitch % widest == 0));
    if (aligned) launch<widest>(y, y_pitch, x, x_pitch, rows, columns);
    else launch<1>(y, y_pitch, x, x_pitch, rows, columns);
  }

 private:
  template <int Width, class To, class From>
  static void launch(To* y, long y_pitch, const From* x, long x_pitch, long rows, long columns) {
    const long packs = (columns + Width - 1) / Width;
    skein::cuda::for_each(rows * packs, cuda::Convert<To, From, Width>{y, y_pitch, x, x_pitch, columns, packs});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
