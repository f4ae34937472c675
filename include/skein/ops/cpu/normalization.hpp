// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows in vectors: three short passes over a row in the first-level cache. Without xsimd it is the reference.
//
//     s the shape: rows of n values; x, y, dx, dy of that shape; r a row, c a value of it; C what is taken away; V a vector of
//     Scalar
#pragma once
#include "normalize_columns.hpp"

#if SKEIN_WITH_XSIMD
#include <algorithm>

#include "vector.hpp"
#include "vector_part.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
template <class Scalar> SKEIN_ALWAYS_INLINE Scalar row_sum(const Scalar* row, long n) {
  using V = xsimd::batch<Scalar>;
  V total(Scalar(0));
  each_vector_of<Scalar>(
      n, [&](long c) { total += V::load_unaligned(row + c); },
      [&](long c, long left) { total += load_part<Scalar>(row + c, left, Scalar(0)); });
  return xsimd::hadd(total);
}
}  // namespace detail

/// Does what reference::row_normalize does, in vectors.
template <Center C = Center::mean, class Scalar> void row_normalize(const RowShape& s, const Scalar* x, const Scalar* weight,
                                                                    const Scalar* bias, double epsilon, Scalar* y,
                                                                    Scalar* saved_for_backward) {
  using V = xsimd::batch<Scalar>;
  using detail::each_vector_of, detail::load_ones, detail::load_part, detail::store_part;
  constexpr bool centers = C == Center::mean;
  const Scalar one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
  for (long r = 0; r < s.rows; ++r) {
    const Scalar* in = x + r * s.pitch;
    Scalar* out = y + r * s.pitch;
    Scalar mean = centers ? detail::row_sum(in, s.n) * one_of_n : Scalar(0);
    V squares(Scalar(0)), rests(Scalar(0));
    const auto add = [&](const V& d) {
      squares = fused(d, d, squares);
      if constexpr (centers) rests += d;
    };
    each_vector_of<Scalar>(
        s.n, [&](long c) { add(V::load_unaligned(in + c) - V(mean)); },
        [&](long c, long left) { add(load_part<Scalar>(in + c, left, mean) - V(mean)); });
    Scalar variance = xsimd::hadd(squares) * one_of_n;
    if constexpr (centers) {  // what the sum's rounding took from the mean: of large values more than epsilon's root
      const Scalar rest = xsimd::hadd(rests) * one_of_n;
      mean += rest;
      variance -= rest * rest;
      if (variance < 0) variance = 0;
    }
    const Scalar inverse = static_cast<Scalar>(1 / std::sqrt(static_cast<double>(variance) + epsilon));
    each_vector_of<Scalar>(
        s.n,
        [&](long c) {
          const V hat = (V::load_unaligned(in + c) - V(mean)) * V(inverse), w = V::load_unaligned(weight + c);
          if constexpr (centers) fused(hat, w, V::load_unaligned(bias + c)).store_unaligned(out + c);
          else (hat * w).store_unaligned(out + c);
        },
        [&](long c, long left) {
          for (long k = c; k < c + left; ++k) out[k] = (in[k] - mean) * inverse * weight[k] + (centers ? bias[k] : Scalar(0));
        });
    for (long c = s.n; c < s.pitch; ++c) out[c] = 0;
    Scalar* const kept = saved_for_backward + row_statistics<C> * r;
    kept[0] = mean;
    kept[row_statistics<C> - 1] = inverse;
  }
}

/// The gradients of weight and bias are gathered over 64 rows before they are added, so that long sums keep their digits.
/// scratch: 2 s.n scalars.
template <Center C = Center::mean, class Scalar>
void row_normalize_backward(const RowShape& s, const Scalar* x, const Scalar* dy, const Scalar* weight,
                            const Scalar* saved_for_backward, Scalar* dx, Scalar* dweight, Scalar* dbias, Scalar* scratch) {
  using V = xsimd::batch<Scalar>;
  constexpr long lanes = static_cast<long>(V::size);
  constexpr bool centers = C == Center::mean;
  Scalar* weights = scratch;
  Scalar* biases = scratch + s.n;
  const Scalar one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
  for (long begin = 0; begin < s.rows; begin += 64) {
    for (long c = 0; c < s.n; ++c) weights[c] = biases[c] = 0;
    for (long r = begin; r < std::min(begin + 64, s.rows); ++r) {
      const Scalar* in = x + r * s.pitch;
      const Scalar* g = dy + r * s.pitch;
      const Scalar* const kept = saved_for_backward + row_statistics<C> * r;
      const Scalar mean = centers ? kept[0] : Scalar(0), inverse = kept[row_statistics<C> - 1];
      V sums(Scalar(0)), products(Scalar(0));
      long c = 0;
      for (; c + lanes <= s.n; c += lanes) {
        const V slope = V::load_unaligned(g + c), hat = (V::load_unaligned(in + c) - V(mean)) * V(inverse);
        const V scaled = slope * V::load_unaligned(weight + c);
        fused(slope, hat, V::load_unaligned(weights + c)).store_unaligned(weights + c);
        if constexpr (centers) {
          (slope + V::load_unaligned(biases + c)).store_unaligned(biases + c);
          sums += scaled;
        }
        products = fused(scaled, hat, products);
      }
      Scalar sum = xsimd::hadd(sums), product = xsimd::hadd(products);
      for (; c < s.n; ++c) {
        const Scalar hat = (in[c] - mean) * inverse;
        weights[c] += g[c] * hat;
        biases[c] += g[c];
        sum += centers ? g[c] * weight[c] : Scalar(0);
        product += g[c] * weight[c] * hat;
      }
      if (!dx) continue;
      const Scalar average = sum * one_of_n, along = product * one_of_n;
      Scalar* out = dx + r * s.pitch;
      for (c = 0; c + lanes <= s.n; c += lanes) {
        const V hat = (V::load_unaligned(in + c) - V(mean)) * V(inverse),
                scaled = V::load_unaligned(g + c) * V::load_unaligned(weight + c);
        (V(inverse) * (scaled - V(average) - hat * V(along))).store_unaligned(out + c);
      }
      for (; c < s.n; ++c) out[c] = inverse * (g[c] * weight[c] - average - (in[c] - mean) * inverse * along);
      for (; c < s.pitch; ++c) out[c] = 0;
    }
    for (long c = 0; c < s.n; ++c) {
      dweight[c] += weights[c];
      if constexpr (centers) dbias[c] += biases[c];
    }
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#else

namespace skein::inline SKEIN_ABI::ops::cpu {
using reference::row_normalize;
template <Center C = Center::mean, class Scalar>
void row_normalize_backward(const RowShape& s, const Scalar* x, const Scalar* dy, const Scalar* weight,
                            const Scalar* saved_for_backward, Scalar* dx, Scalar* dweight, Scalar* dbias, Scalar*) {
  reference::row_normalize_backward<C>(s, x, dy, weight, saved_for_backward, dx, dweight, dbias);
}
}  // namespace skein::inline SKEIN_ABI::ops::cpu

#endif
