// SPDX-License-Identifier: Apache-2.0
// y = x W + b and its gradients by products with compile-time columns. The gradient of the input goes over a transposed copy of
// the weight, made once for each change of the weights, or panel by panel where it is large: all three are the same kernel.
//
//     x (N, In), w (In, Out), b (Out), y (N, Out); N samples: batch; n a sample, i an input, j a vector of outputs; g arguments
#pragma once
#include "column_sums.hpp"
#include "transpose.hpp"

#if SKEIN_WITH_XSIMD

namespace skein::inline SKEIN_ABI::ops::cpu {

/// How far the rows of an (in, out) weight lie apart, and those of the gradients of as many outputs.
constexpr Spacing weight_spacing(int in, int out) {
  return dense_kernel(in, out) == DenseKernel::large ? Spacing::far : Spacing::near;
}

/// y = x W + b. x is (batch, In), y is (batch, Out), both padded to row_pitch.
template <class Scalar, int In, int Out> struct DenseSmall {
  static constexpr long x_pitch = row_pitch(In), pitch = row_pitch(Out);
  static constexpr Spacing spacing = weight_spacing(In, Out);

  template <class Finish>
  static void forward(long batch, const Scalar* x, const Scalar* w, const Scalar*, const Scalar* bias, Scalar* y) {
    small_product<Out, false, false, Finish, spacing>(
        Product<Scalar>{.m = batch, .k = In, .a = x, .lda = x_pitch, .b = w, .ldb = pitch, .c = y, .ldc = pitch, .start = bias});
  }
  static void input_gradient(long batch, const Scalar* dy, const Scalar* w, const Scalar* transposed, Scalar* workspace,
                             Scalar* dx) {
    if constexpr (dense_kernel(In, Out) == DenseKernel::large) {
      by_panels(batch, dy, w, workspace, dx, std::make_integer_sequence<int, ColumnPlan<Scalar, In>::all>{});
    } else if constexpr (In <= 4) {
      dots(batch, dy, w, dx);
    } else if constexpr (turns_on_the_fly(In, Out)) {
      alignas(64) Scalar here[Out * x_pitch];
      if constexpr (x_pitch > In)  // the gap too: it is read, if in vain
        for (long j = 0; j < Out; ++j)
          for (long i = In; i < x_pitch; ++i) here[j * x_pitch + i] = 0;
      transpose(long(In), 0, long(Out), w, pitch, here, x_pitch);
      times_transposed(batch, dy, here, dx);
    } else {
      times_transposed(batch, dy, transposed, dx);
    }
  }
  static void gradients(const DenseGradients<Scalar>& g, Share share = {}) {
    Product<Scalar> p{.m = In, .k = g.batch, .a = g.x, .lda = x_pitch, .b = g.dy, .ldb = pitch, .c = g.dw, .ldc = pitch};
    p.start = g.accumulate ? g.dw : nullptr;
    p.start_pitch = pitch;
    small_product<Out, true, true, Keep, spacing>(p, share);
    ColumnSums<Scalar> sums{.rows = g.batch, .pitch = pitch, .dy = g.dy, .sums = g.db, .accumulate = g.accumulate};
    if (g.db) column_sums<Out>(sums, share);
  }
  /// Columns [begin, end) of the weight become rows of the copy.
  static void pack_weights(long begin, long end, const Scalar* w, Scalar* transposed) {
    if constexpr (dense_packed_weights(In, Out) > 0) transpose(long(In), begin, end, w, pitch, transposed, x_pitch);
  }

 private:
  static void times_transposed(long batch, const Scalar* dy, const Scalar* transposed, Scalar* dx) {
    small_product<In, false, false>(
        Product<Scalar>{.m = batch, .k = Out, .a = dy, .lda = pitch, .b = transposed, .ldb = x_pitch, .c = dx, .ldc = x_pitch});
  }
  /// A large weight: each panel of its transposed copy is made, in the second-level cache, just before it is used.
  template <int... I> static void by_panels(long batch, const Scalar* dy, const Scalar* w, Scalar* workspace, Scalar* dx,
                                            std::integer_sequence<int, I...>) {
    using Plan = ColumnPlan<Scalar, In>;
    auto one = [&]<class V, int Width>(V, std::integral_constant<int, Width>, long first) {
      constexpr long columns = Width * static_cast<long>(V::size);
      static_assert(columns <= 128);
      transpose(first + columns < In ? columns : In - first, 0, long(Out), w + first * pitch, pitch, workspace, columns);
      panel<V, Width, false, false, Keep>(Product<Scalar>{
          .m = batch, .k = Out, .a = dy, .lda = pitch, .b = workspace, .ldb = columns, .c = dx + first, .ldc = x_pitch});
    };
    auto choose = [&]<int Index>(std::integral_constant<int, Index>) {
      if constexpr (Index < Plan::panels)
        one(typename Plan::V{}, std::integral_constant<int, Plan::width(Index)>{}, Plan::first(Index));
      else one(typename Plan::Tail{}, std::integral_constant<int, 1>{}, Plan::first(Index));
    };
    const int each[] = {(choose(std::integral_constant<int, I>{}), 0)...};
    (void)each;
  }
  /// Few inputs: their rows are not padded, so each gradient is a dot product.
  static void dots(long batch, const Scalar* dy, const Scalar* w, Scalar* dx) {
    constexpr int lanes = ColumnPlan<Scalar, Out>::half, vectors = (Out + lanes - 1) / lanes;
    using V = Vector<Scalar, lanes>;
    for (long n = 0; n < batch; ++n) {
      V sum[In];
      for (int i = 0; i < In; ++i) sum[i] = V(Scalar(0));
      for (int j = 0; j < vectors; ++j) {
        V d = V::load_unaligned(dy + n * pitch + j * lanes);
        if (j == vectors - 1 && Out % lanes != 0) d = xsimd::select(detail::first_lanes<V>(Out - j * lanes), d, V(Scalar(0)));
        for (int i = 0; i < In; ++i) sum[i] = fused(d, V::load_unaligned(w + i * pitch + j * lanes), sum[i]);
      }
      for (int i = 0; i < In; ++i) dx[n * x_pitch + i] = xsimd::hadd(sum[i]);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
