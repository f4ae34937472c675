// SPDX-License-Identifier: Apache-2.0
// The innermost part of the small matrix products: a tile of C stays in registers while k runs. Shared by all layers: sizes of
// the tile are template arguments, sizes of the matrices are not. Goto and van de Geijn, ACM TOMS 2008, without packing.
//
//     m rows of A and C, k columns of A and rows of B; lda, ldb, ldc scalars from row to row of A, B, C;
//     i, r a row of C, j a vector of its columns; p the product, V a vector of Scalar
#pragma once
#include "../dense_types.hpp"
#include "vector.hpp"

#if SKEIN_WITH_XSIMD
#include <type_traits>

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// The operands of C = op(A) B + start; a, b and c are not null, whatever m and k are. A is (m, k), stored transposed where the
/// tile says so; rows of `start` are start_pitch apart: 0 repeats a row (a bias); null: zeros. `rectified`: Keep stores
/// max(v, 0). `left`: lanes of the last vector that a masked tile stores, zeros go to the others.
template <class Scalar> struct Product {
  long m = 0, k = 0;
  const Scalar* a = nullptr;
  long lda = 0;
  const Scalar* b = nullptr;
  long ldb = 0;
  Scalar* c = nullptr;
  long ldc = 0;
  const Scalar* start = nullptr;
  long start_pitch = 0;
  int left = 0;
  bool rectified = false;

  SKEIN_ALWAYS_INLINE Product columns(long first) const {
    Product p = *this;
    p.b += first;
    p.c += first;
    if (p.start) p.start += first;
    return p;
  }
};

/// Keep, for a C that is larger than the caches, its rows multiples of a vector: see stream_to.
struct KeepByStream : Keep {};

/// Nothing is fetched: for operands that stay in the caches.
struct NoFetch {};

/// The rows of B are copied, side by side, to an aligned place while they are read, and fetched some rows before.
template <class Scalar> struct CopyRows {
  static constexpr long ahead = 16;
  Scalar* to;
};

namespace detail {
template <class V> SKEIN_ALWAYS_INLINE auto first_lanes(int n) {
  using Scalar = typename V::value_type;
  alignas(64) static constexpr Scalar index[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return V::load_aligned(index) < V(static_cast<Scalar>(n));
}

/// Rows x Columns vectors of C, from row i. Where it fetches, k is a multiple of a line's values.
template <class V, int Rows, int Columns, bool Turned, bool Masked, class Finish, class Scalar, class Fetch = NoFetch>
SKEIN_ALWAYS_INLINE void tile(const Product<Scalar>& p, long i, Fetch fetch = {}) {
  constexpr int lanes = static_cast<int>(V::size);
  constexpr bool copies = std::is_same_v<Fetch, CopyRows<Scalar>>;
  V sum[Rows][Columns];
  if (p.start) {
    const Scalar* start = p.start + i * p.start_pitch;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j) sum[r][j] = V::load_unaligned(start + r * p.start_pitch + j * lanes);
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j) sum[r][j] = V(Scalar(0));
  }
  const Scalar *a = p.a + (Turned ? i : i * p.lda), *b = p.b;
  const long lda = p.lda, ldb = p.ldb;
  const auto add_next = [&](long count) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (long k = count; k > 0; --k) {
      V row[Columns];
#pragma GCC unroll 16
      for (int j = 0; j < Columns; ++j) {
        row[j] = V::load_unaligned(b + j * lanes);
        keep(row[j]);
      }
      if constexpr (copies) {
#pragma GCC unroll 16
        for (int j = 0; j < Columns; ++j) row[j].store_aligned(fetch.to + j * lanes);
        fetch.to += Columns * lanes;
        __builtin_prefetch(b + Fetch::ahead * ldb);
        __builtin_prefetch(b + Fetch::ahead * ldb + Columns * lanes - 1);
      }
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const V factor(Turned ? a[r] : a[r * lda]);
#pragma GCC unroll 16
        for (int j = 0; j < Columns; ++j) sum[r][j] = fused(factor, row[j], sum[r][j]);
      }
      a += Turned ? lda : 1;
      b += ldb;
    }
  };
  if constexpr (copies || std::is_same_v<Fetch, NoFetch>) {
    add_next(p.k);
  } else {
    for (long k = 0; k < p.k; k += Fetch::line) {
      fetch.at(k, p.k, i, Rows);
      add_next(Fetch::line);
    }
  }
  if constexpr (std::is_same_v<Finish, Keep> && !Turned)
    if (p.rectified)
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int j = 0; j < Columns; ++j) sum[r][j] = xsimd::max(V(Scalar(0)), sum[r][j]);  // in this order NaN stays
  Scalar* c = p.c + i * p.ldc;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) {
      V v = Finish{}(sum[r][j]);
      if (Masked && j == Columns - 1) v = xsimd::select(first_lanes<V>(p.left), v, V(Scalar(0)));
      if constexpr (std::is_same_v<Finish, KeepByStream>) stream_to(c + r * p.ldc + j * lanes, v);
      else v.store_unaligned(c + r * p.ldc + j * lanes);
    }
}

/// Rows of a tile that is `columns` vectors wide, by the number of registers.
constexpr int tile_rows(int columns) {
  if (accumulators > 16) return columns >= 5 ? 5 : columns == 4 ? 6 : columns == 3 ? 8 : 12;
  return columns >= 3 ? 4 : columns == 2 ? 6 : 8;
}
inline constexpr int widest_tile = accumulators > 16 ? 5 : 3;
}  // namespace detail

/// All rows of a panel of C that is Columns vectors wide.
template <class V, int Columns, bool Turned, bool Masked, class Finish, class Scalar, class Fetch = NoFetch>
SKEIN_NOINLINE void panel(const Product<Scalar>& p, Fetch fetch = {}) {
  constexpr int rows = detail::tile_rows(Columns);
  long i = 0;
  for (; i + rows <= p.m; i += rows) detail::tile<V, rows, Columns, Turned, Masked, Finish>(p, i, fetch);
  if (i == p.m) return;
  if constexpr (rows > 4)
    for (; i + 4 <= p.m; i += 4) detail::tile<V, 4, Columns, Turned, Masked, Finish>(p, i);
  if (i + 2 <= p.m) {
    detail::tile<V, 2, Columns, Turned, Masked, Finish>(p, i);
    i += 2;
  }
  if (i < p.m) detail::tile<V, 1, Columns, Turned, Masked, Finish>(p, i);
}

// Panels of float, which most networks share: with `extern` not compiled here, with nothing compiled (into skein::compiled).
#define SKEIN_PANELS(word, V, columns)                                                             \
  word template void panel<V, columns, false, false, Keep, float>(const Product<float>&, NoFetch); \
  word template void panel<V, columns, false, true, Keep, float>(const Product<float>&, NoFetch);  \
  word template void panel<V, columns, true, false, Keep, float>(const Product<float>&, NoFetch);  \
  word template void panel<V, columns, true, true, Keep, float>(const Product<float>&, NoFetch);
namespace detail {
using WholeVector = Vector<float, widest_lanes<float>>;
using HalfVector = Vector<float, widest_lanes<float> / 2>;
}  // namespace detail
#if defined(__AVX512F__)
#define SKEIN_PANELS_OF_FLOAT(word)          \
  SKEIN_PANELS(word, detail::WholeVector, 5) \
  SKEIN_PANELS(word, detail::WholeVector, 4) \
  SKEIN_PANELS(word, detail::WholeVector, 3) \
  SKEIN_PANELS(word, detail::WholeVector, 2) \
  SKEIN_PANELS(word, detail::WholeVector, 1) \
  SKEIN_PANELS(word, detail::HalfVector, 1)
#else
#define SKEIN_PANELS_OF_FLOAT(word)          \
  SKEIN_PANELS(word, detail::WholeVector, 3) \
  SKEIN_PANELS(word, detail::WholeVector, 2) \
  SKEIN_PANELS(word, detail::WholeVector, 1)
#endif
#if SKEIN_COMPILED
SKEIN_PANELS_OF_FLOAT(extern)
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
