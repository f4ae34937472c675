// SPDX-License-Identifier: Apache-2.0
// Passes over dense rows whose columns have numbers of their own (coefficients, a bias): a thread takes 16 bytes of a few rows
// below each other, reads what belongs to its columns once, and has several rows under way. Plainly: one value a thread.
//
//     r a row, c a column, i an element, k one of a thread's rows, s a strip of rows
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../../device/cuda/plain_kernels.hpp"
#include "pack.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace kernel {
/// Body: `column<W>(c)` reads what belongs to columns c to c + W - 1, `load<W>(i)` the elements at i, `store<W>(i, column,
/// loaded)` writes. i = r * columns + c.
template <class Body, int Width> struct RowStrips {
  static constexpr long strip = Width > 1 ? 8 : 1, ahead = Width > 1 ? 4 : 1;
  Body body;
  long rows, columns;
  constexpr void operator()(long index) const {
    const long groups = columns / Width, s = cuda::quotient(index, groups), c = (index - s * groups) * Width;
    const auto column = body.template column<Width>(c);
    const long end = (s + 1) * strip < rows ? (s + 1) * strip : rows;
    long r = s * strip;
    for (; r + ahead <= end; r += ahead) {
      decltype(body.template load<Width>(0L)) in[ahead];
      for (long k = 0; k < ahead; ++k) in[k] = body.template load<Width>((r + k) * columns + c);
      for (long k = 0; k < ahead; ++k) body.template store<Width>((r + k) * columns + c, column, in[k]);
    }
    for (; r < end; ++r) body.template store<Width>(r * columns + c, column, body.template load<Width>(r * columns + c));
  }
};
}  // namespace kernel

/// Runs the body over (rows, columns), rows dense. `aligned`: its arrays lie on 16 bytes. Body::widest: elements of 16 bytes.
template <class Body> void row_strips(long rows, long columns, bool aligned, Body body) {
  constexpr int widest = Body::widest;
  if (widest > 1 && aligned && columns % widest == 0 && !skein::cuda::plain_kernels()) {
    using Packs = kernel::RowStrips<Body, widest>;
    skein::cuda::for_each((rows + Packs::strip - 1) / Packs::strip * (columns / widest), Packs{body, rows, columns});
  } else {
    skein::cuda::for_each(rows * columns, kernel::RowStrips<Body, 1>{body, rows, columns});
  }
}

}  // namespace skein::inline SKEIN_ABI::ops
