// SPDX-License-Identifier: Apache-2.0
// y = x W + b with one to four outputs: dot products over the inputs. The weight is used as a transposed, padded copy, so that
// its rows are vectors; its gradient is summed in registers while the samples go by.
//
//     x (N, In), w (In, Out), b (Out), y (N, Out); N samples: batch; n a sample, j a vector of inputs, o an output; g arguments,
//     V a vector of Scalar
#pragma once
#include "dense_small.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// y = x W + b with one to four outputs, as dot products. x is (batch, In), y is (batch, Out), both padded to row_pitch.
template <class Scalar, int In, int Out> struct DenseThin {
  static_assert(Out <= 4 && In > 4);
  static constexpr long x_pitch = row_pitch(In), pitch = row_pitch(Out);
  static constexpr int lanes = x_pitch % widest_lanes<Scalar> == 0 ? widest_lanes<Scalar> : ColumnPlan<Scalar, In>::half;
  static constexpr int vectors = (In + lanes - 1) / lanes, block = Out == 1 ? 8 : 4;
  using V = Vector<Scalar, lanes>;

  template <class Finish>
  static void forward(long batch, const Scalar* x, const Scalar*, const Scalar* transposed, const Scalar* bias, Scalar* y) {
    for (long n = 0; n < batch; ++n) {
      V sum[Out];
      for (int o = 0; o < Out; ++o) sum[o] = V(Scalar(0));
      for (int j = 0; j < vectors; ++j) {
        const V v = input(x + n * x_pitch, j);
        for (int o = 0; o < Out; ++o) sum[o] = fused(v, V::load_unaligned(transposed + o * x_pitch + j * lanes), sum[o]);
      }
      for (int o = 0; o < Out; ++o) y[n * pitch + o] = Finish{}(xsimd::hadd(sum[o]) + (bias ? bias[o] : Scalar(0)));
    }
  }
  static void input_gradient(long batch, const Scalar* dy, const Scalar*, const Scalar* transposed, Scalar*, Scalar* dx) {
    for (long n = 0; n < batch; ++n)
      for (int j = 0; j < vectors; ++j) {
        V sum = V(dy[n * pitch]) * V::load_unaligned(transposed + j * lanes);
        for (int o = 1; o < Out; ++o)
          sum = fused(V(dy[n * pitch + o]), V::load_unaligned(transposed + o * x_pitch + j * lanes), sum);
        sum.store_unaligned(dx + n * x_pitch + j * lanes);
      }
  }
  static void gradients(const DenseGradients<Scalar>& g, Share = {}) {
    constexpr int blocks = (vectors + block - 1) / block, last = vectors - (blocks - 1) * block;
    for (int i = 0; i + 1 < blocks; ++i) columns<block>(g, i * block);
    columns<last>(g, (blocks - 1) * block);
    if (!g.db) return;
    Scalar sum[Out] = {};
    for (long n = 0; n < g.batch; ++n)
      for (int o = 0; o < Out; ++o) sum[o] += g.dy[n * pitch + o];
    for (int o = 0; o < Out; ++o) g.db[o] = g.accumulate ? g.db[o] + sum[o] : sum[o];
  }
  /// Outputs [begin, end).
  static void pack_weights(long begin, long end, const Scalar* w, Scalar* transposed) {
    for (long o = begin; o < end; ++o) {
      for (long i = 0; i < In; ++i) transposed[o * x_pitch + i] = w[i * pitch + o];
      for (long i = In; i < x_pitch; ++i) transposed[o * x_pitch + i] = 0;
    }
  }

 private:
  /// Vector j of a row; zeros behind the last input.
  static SKEIN_ALWAYS_INLINE V input(const Scalar* row, int j) {
    const V v = V::load_unaligned(row + j * lanes);
    if (In % lanes != 0 && j == vectors - 1) return xsimd::select(detail::first_lanes<V>(In - j * lanes), v, V(Scalar(0)));
    return v;
  }
  /// The gradients of Count vectors of inputs.
  template <int Count> static void columns(const DenseGradients<Scalar>& g, int first) {
    V sum[Out][Count];
    for (int o = 0; o < Out; ++o)
      for (int j = 0; j < Count; ++j) sum[o][j] = V(Scalar(0));
    for (long n = 0; n < g.batch; ++n)
#pragma GCC unroll 16
      for (int j = 0; j < Count; ++j) {
        const V v = V::load_unaligned(g.x + n * x_pitch + (first + j) * lanes);
#pragma GCC unroll 4
        for (int o = 0; o < Out; ++o) sum[o][j] = fused(V(g.dy[n * pitch + o]), v, sum[o][j]);
      }
    alignas(64) Scalar values[lanes];
#pragma GCC unroll 16
    for (int j = 0; j < Count; ++j)
#pragma GCC unroll 4
      for (int o = 0; o < Out; ++o) {
        sum[o][j].store_aligned(values);
        const int at = (first + j) * lanes, end = In - at < lanes ? In - at : lanes;
        for (int i = 0; i < end; ++i) {
          Scalar& to = g.dw[(at + i) * pitch + o];
          to = g.accumulate ? to + values[i] : values[i];
        }
      }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
