// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over rows in vectors: maximum, exponentials and their sum, quotient. Without xsimd, the reference.
#pragma once
#include "../reference/row_softmax.hpp"

#if SKEIN_WITH_XSIMD
#include <cmath>
#include <limits>

#include "vector.hpp"
#include "vector_part.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Does what reference::row_softmax does, in vectors.
template <bool Log, class Scalar> void row_softmax(long rows, long n, long pitch, const Scalar* x, Scalar* y) {
  using V = xsimd::batch<Scalar>;
  using detail::each_vector_of;
  constexpr Scalar none = -std::numeric_limits<Scalar>::infinity();
  const detail::RowTail<Scalar> tail(n, pitch);
  for (long r = 0; r < rows; ++r, x += pitch, y += pitch) {
    V greatest(none), total(Scalar(0));
    each_vector_of<Scalar>(
        n, [&](long c) { greatest = xsimd::max(greatest, V::load_unaligned(x + c)); },
        [&](long c, long) { greatest = xsimd::max(greatest, tail.load(x + c, none)); });
    const V top(detail::greatest_lane(greatest));
    const auto first = [&](const V& v) {  // what the second pass reads
      const V shifted = v - top, e = xsimd::exp(shifted);
      total += e;
      return Log ? shifted : e;
    };
    each_vector_of<Scalar>(
        n, [&](long c) { first(V::load_unaligned(x + c)).store_unaligned(y + c); },
        [&](long c, long) { tail.store(y + c, first(tail.load(x + c, none))); });
    const Scalar sum = xsimd::hadd(total);
    const V divisor(sum), log_sum(std::log(sum));
    const auto second = [&](const V& v) { return Log ? v - log_sum : v / divisor; };
    each_vector_of<Scalar>(
        n, [&](long c) { second(V::load_unaligned(y + c)).store_unaligned(y + c); },
        [&](long c, long) { tail.store(y + c, second(tail.load(y + c, Scalar(0)))); });
  }
}

/// Does what reference::row_softmax_backward does, in vectors.
template <bool Log, class Scalar>
void row_softmax_backward(long rows, long n, long pitch, const Scalar* y, const Scalar* dy, Scalar* dx) {
  using V = xsimd::batch<Scalar>;
  using detail::each_vector_of;
  const detail::RowTail<Scalar> tail(n, pitch);
  for (long r = 0; r < rows; ++r, y += pitch, dy += pitch, dx += pitch) {
    V lanes(Scalar(0));
    const auto add = [&](const V& d, const V& v) { lanes = Log ? lanes + d : fused(d, v, lanes); };
    each_vector_of<Scalar>(
        n, [&](long c) { add(V::load_unaligned(dy + c), V::load_unaligned(y + c)); },
        [&](long c, long) { add(tail.load(dy + c, Scalar(0)), tail.load(y + c, Scalar(0))); });
    const V sum(xsimd::hadd(lanes));
    const auto gradient = [&](const V& d, const V& v) { return Log ? d - xsimd::exp(v) * sum : v * (d - sum); };
    each_vector_of<Scalar>(
        n, [&](long c) { gradient(V::load_unaligned(dy + c), V::load_unaligned(y + c)).store_unaligned(dx + c); },
        [&](long c, long) { tail.store(dx + c, gradient(tail.load(dy + c, Scalar(0)), tail.load(y + c, Scalar(0)))); });
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#else

namespace skein::inline SKEIN_ABI::ops::cpu {
using reference::row_softmax;
using reference::row_softmax_backward;
}  // namespace skein::inline SKEIN_ABI::ops::cpu

#endif
