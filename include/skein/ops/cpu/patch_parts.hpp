// SPDX-License-Identifier: Apache-2.0
// A patch of a convolution, in parts whose sums fit into the registers.
#pragma once
#include "vector.hpp"

#if SKEIN_WITH_XSIMD

namespace skein::inline SKEIN_ABI::ops::cpu {

/// A patch of Rows rows by Vectors vectors, cut into parts of about even sizes.
template <int Rows, int Vectors> struct PatchParts {
  template <int N> struct Size {};

  /// pass(Size<rows>, Size<vectors>, first row, first vector) for each part, row by row.
  template <class Pass> static SKEIN_ALWAYS_INLINE void each(Pass&& pass) {
    for (int r = 0; r < row_parts - 1; ++r) {
      for (int v = 0; v < vector_parts - 1; ++v) pass(Size<part_rows>{}, Size<part_vectors>{}, r * part_rows, v * part_vectors);
      pass(Size<part_rows>{}, Size<last_vectors>{}, r * part_rows, (vector_parts - 1) * part_vectors);
    }
    for (int v = 0; v < vector_parts - 1; ++v) pass(Size<last_rows>{}, Size<part_vectors>{}, Rows - last_rows, v * part_vectors);
    pass(Size<last_rows>{}, Size<last_vectors>{}, Rows - last_rows, (vector_parts - 1) * part_vectors);
  }

 private:
  static constexpr int vector_parts = (Vectors + accumulators - 1) / accumulators;
  static constexpr int part_vectors = (Vectors + vector_parts - 1) / vector_parts,
                       last_vectors = Vectors - (vector_parts - 1) * part_vectors;
  static constexpr int most_rows = accumulators / part_vectors < Rows ? accumulators / part_vectors : Rows;
  static constexpr int row_parts = (Rows + most_rows - 1) / most_rows;
  static constexpr int part_rows = (Rows + row_parts - 1) / row_parts, last_rows = Rows - (row_parts - 1) * part_rows;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
