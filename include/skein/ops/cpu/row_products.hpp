// SPDX-License-Identifier: Apache-2.0
// The three products of a weight (In, Out), with sizes known at compile time, over rows that lie at any distance from each other:
// what a layer has that multiplies by the same weight in each step. Own panels, or a library for weights that do not stay in the
// caches (ops/dense.hpp has the rule).
//
//     m rows; a (m, In) the inputs, w (In, Out) the weight, c (m, Out) the result, g (m, Out) its gradient;
//     lda, ldc, ldg scalars from row to row of them; p the product
#pragma once
#include <algorithm>

#include "../dense.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scalars of the transposed copy of an (in, out) weight that RowProducts reads.
constexpr long row_products_packed(long in, long out) {
#if SKEIN_WITH_XSIMD
  return in > 4 ? out * row_pitch(in) : 0;
#else
  return 0 * (in + out);
#endif
}

/// Products of rows with a weight that is stored (In, row_pitch(Out)). Where own panels run, they write whole vectors: rows of
/// results have room for row_pitch values.
template <class Scalar, int In, int Out> struct RowProducts {
  static constexpr long pitch = row_pitch(Out), packed_pitch = row_pitch(In);
#if SKEIN_WITH_XSIMD
  static constexpr bool panels = !ops::detail::by_library<Scalar, In, Out>;
  static constexpr Spacing spacing = weight_spacing(In, Out);
#else
  static constexpr bool panels = false;
#endif
  static constexpr bool own_forward = panels && Out > 4, own_back = panels && In > 4;
  static constexpr long packed_weights = row_products_packed(In, Out);

  /// c = a w + bias, for m rows; without a bias, c += a w. a: (m, lda), c: (m, ldc).
  static void forward(long m, const Scalar* a, long lda, const Scalar* w, const Scalar* bias, Scalar* c, long ldc) {
#if SKEIN_WITH_XSIMD
    if constexpr (own_forward) {
      Product<Scalar> p{.m = m, .k = In, .a = a, .lda = lda, .b = w, .ldb = pitch, .c = c, .ldc = ldc};
      p.start = bias ? bias : c;
      p.start_pitch = bias ? 0 : ldc;
      return small_product<Out, false, false, Keep, spacing>(p);
    }
#endif
    for (long i = 0; bias && i < m; ++i) std::copy_n(bias, Out, c + i * ldc);
    gemm<Cpu>(Transpose::no, Transpose::no, m, Out, In, Scalar(1), a, lda, w, pitch, Scalar(1), c, ldc);
  }
  /// c = g w^T, or c += g w^T, for m rows. g: (m, ldg), c: (m, ldc).
  static void input_gradient(long m, const Scalar* g, long ldg, const Scalar* w, [[maybe_unused]] const Scalar* transposed,
                             bool add, Scalar* c, long ldc) {
#if SKEIN_WITH_XSIMD
    if constexpr (own_back) {
      Product<Scalar> p{.m = m, .k = Out, .a = g, .lda = ldg, .b = transposed, .ldb = packed_pitch, .c = c, .ldc = ldc};
      p.start = add ? c : nullptr;
      p.start_pitch = ldc;
      return small_product<In, false, false, Keep, spacing>(p);
    }
#endif
    gemm<Cpu>(Transpose::no, Transpose::yes, m, In, Out, Scalar(1), g, ldg, w, pitch, Scalar(add), c, ldc);
  }
  /// dw += a^T g over m rows. a: (m, lda), g: (m, ldg).
  static void add_weight_gradient(long m, const Scalar* a, long lda, const Scalar* g, long ldg, Scalar* dw) {
#if SKEIN_WITH_XSIMD
    if constexpr (own_forward) {
      Product<Scalar> p{.m = In, .k = m, .a = a, .lda = lda, .b = g, .ldb = ldg, .c = dw, .ldc = pitch};
      p.start = dw;
      p.start_pitch = pitch;
      return small_product<Out, true, true, Keep, spacing>(p);
    }
#endif
    gemm<Cpu>(Transpose::yes, Transpose::no, In, Out, m, Scalar(1), a, lda, g, ldg, Scalar(1), dw, pitch);
  }
  /// Columns [begin, end) of w become rows of the transposed copy.
  static void pack_weights(long begin, long end, const Scalar* w, Scalar* transposed) {
    if constexpr (own_back) transpose(long(In), begin, end, w, pitch, transposed, packed_pitch);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
