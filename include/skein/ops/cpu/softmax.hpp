// SPDX-License-Identifier: Apache-2.0
// Softmax, cross-entropy and gradient of a row of logits in vectors: three short passes over a row that stays in the
// first-level cache (maximum; exponentials and their sum; gradient). Without xsimd it is the reference.
#pragma once
#include "../reference/softmax.hpp"

#if SKEIN_WITH_XSIMD
#include <limits>
#include <type_traits>

#include "vector.hpp"
#include "vector_part.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
template <class Scalar> SKEIN_ALWAYS_INLINE xsimd::batch<Scalar> load_weights(const float* from) {
  if constexpr (std::is_same_v<Scalar, float>) return xsimd::batch<float>::load_unaligned(from);
  else return load_part<Scalar>(from, static_cast<long>(xsimd::batch<Scalar>::size), Scalar(0));
}
}  // namespace detail

/// Does what reference::cross_entropy does, in vectors over the classes.
template <class Scalar> CrossEntropySums cross_entropy(const CrossEntropyArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  using detail::each_vector_of, detail::load_part, detail::load_ones, detail::load_weights;
  constexpr Scalar none = -std::numeric_limits<Scalar>::infinity();
  const long n = p.classes;
  const detail::RowTail<Scalar> tail(n, p.pitch);
  const Scalar share = p.smoothing / static_cast<Scalar>(n);
  Scalar all_weights = static_cast<Scalar>(n);
  if (p.class_weights) {
    all_weights = 0;
    for (long c = 0; c < n; ++c) all_weights += static_cast<Scalar>(p.class_weights[c]);
  }
  CrossEntropySums sums;
  for (long r = 0; r < p.count; ++r) {
    const Scalar* x = p.logits + r * p.pitch;
    Scalar* g = p.gradient ? p.gradient + r * p.pitch : nullptr;
    const std::int32_t label = p.labels[r];
    if (p.skipped(label)) {
      for (long c = 0; g && c < p.pitch; ++c) g[c] = 0;
      continue;
    }
    if (!p.legal(label)) {
      sums.wrong = r;
      return sums;
    }
    V greatest(none);
    each_vector_of<Scalar>(
        n, [&](long c) { greatest = xsimd::max(greatest, V::load_unaligned(x + c)); },
        [&](long c, long) { greatest = xsimd::max(greatest, tail.load(x + c, none)); });
    const Scalar top = detail::greatest_lane(greatest);
    V total_lanes(Scalar(0));
    each_vector_of<Scalar>(
        n,
        [&](long c) {
          const V e = xsimd::exp(V::load_unaligned(x + c) - V(top));
          total_lanes += e;
          if (g) e.store_unaligned(g + c);
        },
        [&](long c, long) {
          const V e = xsimd::exp(tail.load(x + c, none) - V(top));
          total_lanes += e;
          if (g) tail.store(g + c, e);
        });
    const Scalar total = xsimd::hadd(total_lanes), log_total = std::log(total);
    const Scalar weight = p.class_weights ? static_cast<Scalar>(p.class_weights[label]) : Scalar(1);
    const Scalar hard = (1 - p.smoothing) * weight;
    Scalar loss = hard == 0 ? 0 : hard * (log_total - (x[label] - top)), attention = hard;  // not 0 times infinity
    if (share != 0) {  // sum_c w_c (-log p_c), spread by the smoothing
      const V zero(Scalar(0));
      V spread = zero;
      const auto add = [&](V logit, V w) { spread += xsimd::select(w == zero, zero, w * (V(log_total) - (logit - V(top)))); };
      each_vector_of<Scalar>(
          n,
          [&](long c) {
            add(V::load_unaligned(x + c), p.class_weights ? load_weights<Scalar>(p.class_weights + c) : V(Scalar(1)));
          },
          [&](long c, long left) {  // lanes beyond the row: weight 0 and a finite logit
            add(tail.load(x + c, top),
                p.class_weights ? load_part<Scalar>(p.class_weights + c, left, Scalar(0)) : load_ones<Scalar>(left));
          });
      loss += share * xsimd::hadd(spread);
      attention += share * all_weights;
    }
    if (g) {
      const V factor(attention * p.scale / total), even(-share * p.scale);
      const bool weighted = share != 0 && p.class_weights;
      each_vector_of<Scalar>(
          n,
          [&](long c) {
            const V w = weighted ? load_weights<Scalar>(p.class_weights + c) : V(Scalar(1));
            fused(V::load_unaligned(g + c), factor, even * w).store_unaligned(g + c);
          },
          [&](long c, long left) {
            const V w = weighted ? load_part<Scalar>(p.class_weights + c, left, Scalar(0)) : V(Scalar(1));
            tail.store(g + c, fused(tail.load(g + c, Scalar(0)), factor, even * w));
          });
      g[label] -= hard * p.scale;
      for (long c = n; c < p.pitch; ++c) g[c] = 0;
    }
    if (x[label] == top && total == total) {  // the first of equal maxima wins, as in arg-max; among NaNs none
      bool earlier = false;
      for (long c = 0; c < label; ++c) earlier |= x[c] == top;
      sums.correct += !earlier;
    }
    sums.loss += static_cast<double>(loss);
    sums.weight += static_cast<double>(weight);
  }
  return sums;
}
#if SKEIN_COMPILED
extern template CrossEntropySums cross_entropy<float>(const CrossEntropyArguments<float>&);
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#else

namespace skein::inline SKEIN_ABI::ops::cpu {
using reference::cross_entropy;
}

#endif
