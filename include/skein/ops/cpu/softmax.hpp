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

namespace detail {
/// The passes over a row of logits x, whose gradient is g, or null.
template <class Scalar> class CrossEntropyRow {
  using V = xsimd::batch<Scalar>;
  static constexpr Scalar none = -std::numeric_limits<Scalar>::infinity();

 public:
  explicit CrossEntropyRow(const CrossEntropyArguments<Scalar>& p)
      : p_(p), n_(p.classes), tail_(p.classes, p.pitch), share_(p.smoothing / static_cast<Scalar>(p.classes)),
        all_weights_(static_cast<Scalar>(p.classes)) {
    if (!p.class_weights) return;
    all_weights_ = 0;
    for (long c = 0; c < n_; ++c) all_weights_ += static_cast<Scalar>(p.class_weights[c]);
  }

  SKEIN_ALWAYS_INLINE void add(const Scalar* x, Scalar* g, std::int32_t label, CrossEntropySums& sums) const {
    const Scalar top = greatest(x), total = exponentials(x, top, g), log_total = std::log(total);
    const Scalar weight = p_.class_weights ? static_cast<Scalar>(p_.class_weights[label]) : Scalar(1);
    const Scalar hard = (1 - p_.smoothing) * weight;
    Scalar loss = hard == 0 ? 0 : hard * (log_total - (x[label] - top)), attention = hard;  // not 0 times infinity
    if (share_ != 0) {
      loss += share_ * spread(x, top, log_total);
      attention += share_ * all_weights_;
    }
    if (g) {
      differentiate(g, attention * p_.scale / total);
      g[label] -= hard * p_.scale;
      for (long c = n_; c < p_.pitch; ++c) g[c] = 0;
    }
    if (x[label] == top && total == total) {  // the first of equal maxima wins, as in arg-max; among NaNs none
      bool earlier = false;
      for (long c = 0; c < label; ++c) earlier |= x[c] == top;
      sums.correct += !earlier;
    }
    sums.loss += static_cast<double>(loss);
    sums.weight += static_cast<double>(weight);
  }

 private:
  SKEIN_ALWAYS_INLINE Scalar greatest(const Scalar* x) const {
    V all(none);
    each_vector_of<Scalar>(
        n_, [&](long c) { all = xsimd::max(all, V::load_unaligned(x + c)); },
        [&](long c, long) { all = xsimd::max(all, tail_.load(x + c, none)); });
    return greatest_lane(all);
  }
  /// Their sum; each is written to g.
  SKEIN_ALWAYS_INLINE Scalar exponentials(const Scalar* x, Scalar top, Scalar* g) const {
    V total(Scalar(0));
    each_vector_of<Scalar>(
        n_,
        [&](long c) {
          const V e = xsimd::exp(V::load_unaligned(x + c) - V(top));
          total += e;
          if (g) e.store_unaligned(g + c);
        },
        [&](long c, long) {
          const V e = xsimd::exp(tail_.load(x + c, none) - V(top));
          total += e;
          if (g) tail_.store(g + c, e);
        });
    return xsimd::hadd(total);
  }
  /// sum_c w_c (-log p_c), of which the smoothing takes a share.
  SKEIN_ALWAYS_INLINE Scalar spread(const Scalar* x, Scalar top, Scalar log_total) const {
    const V zero(Scalar(0));
    V sum = zero;
    const auto add = [&](V logit, V w) { sum += xsimd::select(w == zero, zero, w * (V(log_total) - (logit - V(top)))); };
    each_vector_of<Scalar>(
        n_,
        [&](long c) {
          add(V::load_unaligned(x + c), p_.class_weights ? load_weights<Scalar>(p_.class_weights + c) : V(Scalar(1)));
        },
        [&](long c, long left) {  // lanes beyond the row: weight 0 and a finite logit
          add(tail_.load(x + c, top),
              p_.class_weights ? load_part<Scalar>(p_.class_weights + c, left, Scalar(0)) : load_ones<Scalar>(left));
        });
    return xsimd::hadd(sum);
  }
  /// g, the exponentials, times the factor, less what the smoothing takes.
  SKEIN_ALWAYS_INLINE void differentiate(Scalar* g, Scalar by) const {
    const V factor(by), even(-share_ * p_.scale);
    const bool weighted = share_ != 0 && p_.class_weights;
    each_vector_of<Scalar>(
        n_,
        [&](long c) {
          const V w = weighted ? load_weights<Scalar>(p_.class_weights + c) : V(Scalar(1));
          fused(V::load_unaligned(g + c), factor, even * w).store_unaligned(g + c);
        },
        [&](long c, long left) {
          const V w = weighted ? load_part<Scalar>(p_.class_weights + c, left, Scalar(0)) : V(Scalar(1));
          tail_.store(g + c, fused(tail_.load(g + c, Scalar(0)), factor, even * w));
        });
  }

  const CrossEntropyArguments<Scalar>& p_;
  long n_;
  RowTail<Scalar> tail_;
  Scalar share_, all_weights_;
};
}  // namespace detail

/// Does what reference::cross_entropy does, in vectors over the classes.
template <class Scalar> CrossEntropySums cross_entropy(const CrossEntropyArguments<Scalar>& p) {
  const detail::CrossEntropyRow<Scalar> row(p);
  CrossEntropySums sums;
  for (long r = 0; r < p.count; ++r) {
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
    row.add(p.logits + r * p.pitch, g, label, sums);
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
