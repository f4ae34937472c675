// SPDX-License-Identifier: Apache-2.0
// A panel of a product whose B the second-level cache does not hold. Rows of B lie far apart there, often by a power of two, so
// that a cache holds few of them at once: they are copied side by side onto the stack, by blocks, while the first tile of rows
// of C reads them, and those of the next block are fetched behind it.
//
//     m rows of A and C, k columns of A and rows of B; lda, ldb, ldc scalars from row to row of A, B, C;
//     p the product, q a block of it, V a vector of Scalar
#pragma once
#include <algorithm>

#include "tile.hpp"

#if SKEIN_WITH_XSIMD

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
/// Rows of B in a block. The product of a transposed A reads lines of A as far apart as those of B.
template <bool Turned> inline constexpr long far_block = Turned ? 128 : blocking.far_rows;
/// Fewer rows of C do not pay for a copy.
inline constexpr long fewest_for_copy = 16;

/// One block, p.b as it lies, its copy in `room`; meanwhile `rows` rows of as many columns, p.ldb apart, are fetched from `next`.
template <class V, int Columns, bool Turned, bool Masked, class Finish, class Scalar>
void far_block_product(const Product<Scalar>& p, Scalar* room, const Scalar* next, long rows) {
  constexpr long width = Columns * static_cast<long>(V::size), line = 64 / static_cast<long>(sizeof(Scalar));
  constexpr long first = tile_rows(Columns), together = 3 * first;
  tile<V, tile_rows(Columns), Columns, Turned, Masked, Finish>(p, 0, CopyRows<Scalar>{room});
  for (long r = first; r < p.m; r += together) {
    Product<Scalar> q = p;
    q.m = std::min(together, p.m - r);
    q.a += Turned ? r : r * p.lda;
    q.b = room;
    q.ldb = width;
    q.c += r * p.ldc;
    if (p.start) q.start += r * p.start_pitch;
    for (long i = (r - first) * rows / p.m; i < (r - first + together) * rows / p.m; ++i)
      for (long j = 0; j < width + line - 1; j += line) __builtin_prefetch(next + i * p.ldb + j, 0, 2);
    panel<V, Columns, Turned, Masked, Finish>(q);
  }
}
}  // namespace detail

/// All rows of a panel of C that is Columns vectors wide; the same as panel().
template <class V, int Columns, bool Turned, bool Masked, class Finish, class Scalar>
SKEIN_NOINLINE void far_panel(const Product<Scalar>& p) {
  constexpr long block = detail::far_block<Turned>, width = Columns * static_cast<long>(V::size);
  if (p.m < detail::fewest_for_copy) return panel<V, Columns, Turned, Masked, Finish>(p);
  alignas(64) Scalar room[block * width];
  Product<Scalar> q = p;
  for (long k = 0; k + block < p.k; k += block) {
    q.k = block;
    q.rectified = false;
    detail::far_block_product<V, Columns, Turned, Masked, Keep>(q, room, q.b + block * p.ldb, std::min(block, p.k - k - block));
    q.a += Turned ? block * p.lda : block;
    q.b += block * p.ldb;
    q.start = p.c;
    q.start_pitch = p.ldc;
  }
  q.k = p.k > 0 ? (p.k - 1) % block + 1 : 0;
  q.rectified = p.rectified;
  detail::far_block_product<V, Columns, Turned, Masked, Finish>(q, room, p.b + width, std::min(block, p.k));
}

// Panels of float: see SKEIN_PANELS_OF_FLOAT.
#define SKEIN_FAR_PANELS(word, V, columns)                                                    \
  word template void far_panel<V, columns, false, false, Keep, float>(const Product<float>&); \
  word template void far_panel<V, columns, true, false, Keep, float>(const Product<float>&);  \
  word template void far_panel<V, columns, true, true, Keep, float>(const Product<float>&);
#if defined(__AVX512F__)
#define SKEIN_FAR_PANELS_OF_FLOAT(word)          \
  SKEIN_FAR_PANELS(word, detail::WholeVector, 5) \
  SKEIN_FAR_PANELS(word, detail::WholeVector, 4) \
  SKEIN_FAR_PANELS(word, detail::WholeVector, 3)
#else
#define SKEIN_FAR_PANELS_OF_FLOAT(word)          \
  SKEIN_FAR_PANELS(word, detail::WholeVector, 3) \
  SKEIN_FAR_PANELS(word, detail::WholeVector, 2)
#endif
#if SKEIN_COMPILED
SKEIN_FAR_PANELS_OF_FLOAT(extern)
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
