// SPDX-License-Identifier: Apache-2.0
// A transposed copy on the GPU: a thread turns a square of 16 bytes by as many rows in its registers, so that both sides are read
// and written in whole sectors.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../transpose.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// to(j, i) = from(i, j), or += that; in the type of the target.
template <class From, class To, int Width, bool Adds = false> struct TransposeSquare {
  long rows, columns;
  const From* from;
  long pitch;
  To* to;
  long to_pitch, squares;  // squares along the columns
  constexpr void operator()(long index) const {
    const long down = quotient(index, squares), i = down * Width, j = (index - down * squares) * Width;
    if (i + Width <= rows && j + Width <= columns) {
      Pack<From, Width> row[Width] = {};
      for (int k = 0; k < Width; ++k) row[k] = load<Width>(from + (i + k) * pitch + j);
      for (int a = 0; a < Width; ++a) {
        To* const at = to + (j + a) * to_pitch + i;
        Pack<To, Width> transposed = {};
        if constexpr (Adds) transposed = load<Width>(at);
        for (int b = 0; b < Width; ++b) put(transposed.value[b], row[b].value[a]);
        store(at, transposed);
      }
      return;
    }
    for (long a = i; a < i + Width && a < rows; ++a)
      for (long b = j; b < j + Width && b < columns; ++b) put(to[b * to_pitch + a], from[a * pitch + b]);
  }

 private:
  static constexpr void put(To& to, From value) {
    if constexpr (Adds) to += static_cast<To>(value);
    else to = static_cast<To>(value);
  }
};

/// Launches squares of Width where packs of both arrays are aligned; false: nothing has been done.
template <int Width, bool Adds, class From, class To>
bool transpose_squares(long rows, long columns, const From* from, long pitch, To* to, long to_pitch) {
  const auto aligned = [](const auto* p) { return reinterpret_cast<std::uintptr_t>(p) % (sizeof(*p) * Width) == 0; };
  if (pitch % Width != 0 || to_pitch % Width != 0 || !aligned(from) || !aligned(to)) return false;
  const long across = (columns + Width - 1) / Width, down = (rows + Width - 1) / Width;
  skein::cuda::for_each(down * across, TransposeSquare<From, To, Width, Adds>{rows, columns, from, pitch, to, to_pitch, across});
  return true;
}
}  // namespace cuda

template <> struct TransposeKernels<Cuda> {
  template <class Scalar> static void run(long rows, long columns, const Scalar* from, long pitch, Scalar* to, long to_pitch) {
    if (!cuda::transpose_squares<cuda::pack_width<Scalar>, false>(rows, columns, from, pitch, to, to_pitch))
      skein::cuda::for_each(rows * columns,
                            cuda::TransposeSquare<Scalar, Scalar, 1>{rows, columns, from, pitch, to, to_pitch, columns});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
