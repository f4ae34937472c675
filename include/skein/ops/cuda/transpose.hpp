// SPDX-License-Identifier: Apache-2.0
// A transposed copy on the GPU: a thread turns a square of 16 bytes by as many rows in its registers, so that both sides are read
// and written in whole sectors.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../transpose.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
template <class Scalar, int Width> struct TransposeSquare {
  long rows, columns;
  const Scalar* from;
  long pitch;
  Scalar* to;
  long to_pitch, squares;  // squares along the columns
  constexpr void operator()(long index) const {
    const long down = quotient(index, squares), i = down * Width, j = (index - down * squares) * Width;
    if (i + Width <= rows && j + Width <= columns) {
      Pack<Scalar, Width> row[Width] = {}, transposed[Width] = {};
      for (int k = 0; k < Width; ++k) row[k] = load<Width>(from + (i + k) * pitch + j);
      for (int a = 0; a < Width; ++a)
        for (int b = 0; b < Width; ++b) transposed[a].value[b] = row[b].value[a];
      for (int k = 0; k < Width; ++k) store(to + (j + k) * to_pitch + i, transposed[k]);
      return;
    }
    for (long a = i; a < i + Width && a < rows; ++a)
      for (long b = j; b < j + Width && b < columns; ++b) to[b * to_pitch + a] = from[a * pitch + b];
  }
};
}  // namespace cuda

template <> struct TransposeKernels<Cuda> {
  template <class Scalar> static void run(long rows, long columns, const Scalar* from, long pitch, Scalar* to, long to_pitch) {
    constexpr int width = cuda::pack_width<Scalar>;
    if (pitch % width == 0 && to_pitch % width == 0 && cuda::aligned_16(from, to)) {
      const long across = (columns + width - 1) / width, down = (rows + width - 1) / width;
      skein::cuda::for_each(down * across,
                            cuda::TransposeSquare<Scalar, width>{rows, columns, from, pitch, to, to_pitch, across});
    } else {
      skein::cuda::for_each(rows * columns, cuda::TransposeSquare<Scalar, 1>{rows, columns, from, pitch, to, to_pitch, columns});
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
