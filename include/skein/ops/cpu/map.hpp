// SPDX-License-Identifier: Apache-2.0
// Elementwise passes in vectors; a part of a vector at the end is loaded and stored with a mask, so that a value does not depend
// on its position. Without xsimd, plain loops.
#pragma once
#include <type_traits>

#include "../../tensor/simd.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
/// out(i) = f(arrays(i)...) over n values.
template <class Function, class Scalar, class... Arrays>
SKEIN_ALWAYS_INLINE void each_value(Function f, long n, Scalar* out, Arrays... arrays) {
  long i = 0;
#if SKEIN_WITH_XSIMD
  if constexpr (skein::detail::is_batched<Scalar>) {
    using V = skein::detail::Batch<Scalar>;
    constexpr long lanes = skein::detail::batch_size<Scalar>;
#pragma GCC unroll 2
    for (; i + lanes <= n; i += lanes) f(V::load_unaligned(arrays + i)...).store_unaligned(out + i);
    if (i < n) skein::detail::store_part(out + i, f(skein::detail::load_part(arrays + i, n - i)...), n - i);
  } else
#endif
    for (; i < n; ++i) out[i] = f(arrays[i]...);
}
}  // namespace detail

/// y[i] = f(x[i]) for n values, in vectors where f takes such. x and y may be the same array.
template <class Function, class Scalar> void map(Function f, long n, const Scalar* x, Scalar* y) {
  detail::each_value(f, n, y, x);
}

/// y[i] = f(a[i], b[i]) for n values, in vectors where f takes such.
template <class Function, class Scalar> void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
  detail::each_value(f, n, y, a, b);
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
