// SPDX-License-Identifier: Apache-2.0
// A transposed copy on the GPU: a block of threads turns a square in shared memory, so that both sides are read and written in
// whole rows of it, whatever they are aligned to.
#pragma once
#include "../../device/cuda/launch_blocks.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "../transpose.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// to(j, i) = from(i, j), or += that; in the type of the target. One value: the plain kernel.
template <class From, class To, bool Adds> struct TransposeValue {
  long columns;
  const From* from;
  long pitch;
  To* to;
  long to_pitch;
  constexpr void operator()(long index) const {
    const long i = quotient(index, columns), j = index - i * columns;
    const To value = static_cast<To>(from[i * pitch + j]);
    if constexpr (Adds) to[j * to_pitch + i] += value;
    else to[j * to_pitch + i] = value;
  }
};

/// Transposes a square of side 64, by 256 threads of 16 values each.
template <class From, class To, bool Adds> struct TransposeTile {
  static constexpr int threads = 256, side = 64, rows_at_once = threads / side, steps_down = side / rows_at_once;
  static constexpr int pitch_of_tile = side + 1;  // columns of it lie in different banks
  struct Own {};
  long rows, columns;
  const From* from;
  long pitch;
  To* to;
  long to_pitch, across;  // squares along the columns

  SKEIN_HOST_DEVICE int steps() const { return 2; }
  std::size_t shared_bytes() const { return sizeof(To) * side * pitch_of_tile; }
  SKEIN_HOST_DEVICE void operator()(int step, long block, int thread, Own&, void* shared) const {
    To* tile = static_cast<To*>(shared);
    const long down = quotient(block, across), i = down * side, j = (block - down * across) * side;
    const int first = thread / side, at = thread % side;
    if (step == 0) {
      if (j + at >= columns) return;
      for (int k = 0; k < steps_down; ++k) {
        const int row = first + k * rows_at_once;
        if (i + row < rows) tile[at * pitch_of_tile + row] = static_cast<To>(from[(i + row) * pitch + j + at]);
      }
      return;
    }
    if (i + at >= rows) return;
    To before[steps_down];  // all loads before the first store
    for (int k = 0; Adds && k < steps_down; ++k) {
      const long column = j + first + k * rows_at_once;
      if (column < columns) before[k] = to[column * to_pitch + i + at];
    }
    for (int k = 0; k < steps_down; ++k) {
      const int row = first + k * rows_at_once;
      if (j + row >= columns) continue;
      To value = tile[row * pitch_of_tile + at];
      if constexpr (Adds) value += before[k];
      to[(j + row) * to_pitch + i + at] = value;
    }
  }
};

/// to(j, i) = from(i, j), or += that, of `rows` by `columns` values.
template <bool Adds, class From, class To>
void transpose(long rows, long columns, const From* from, long pitch, To* to, long to_pitch) {
  if (rows <= 0 || columns <= 0) return;
  if (skein::cuda::plain_kernels())
    return skein::cuda::for_each(rows * columns, TransposeValue<From, To, Adds>{columns, from, pitch, to, to_pitch});
  using Tile = TransposeTile<From, To, Adds>;
  const long across = (columns + Tile::side - 1) / Tile::side, down = (rows + Tile::side - 1) / Tile::side;
  skein::cuda::for_each_block(down * across, Tile{rows, columns, from, pitch, to, to_pitch, across});
}
}  // namespace cuda

template <> struct TransposeKernels<Cuda> {
  template <class Scalar> static void run(long rows, long columns, const Scalar* from, long pitch, Scalar* to, long to_pitch) {
    cuda::transpose<false>(rows, columns, from, pitch, to, to_pitch);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
