// SPDX-License-Identifier: Apache-2.0
// Elementwise passes in vectors; a part of a vector at the end is loaded and stored with a mask, so that a value does not depend
// on its position. Without xsimd, plain loops.
#pragma once
#include <type_traits>

#include "../../tensor/simd.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

template <class Function, class Scalar> void map(Function f, long n, const Scalar* x, Scalar* y) {
  if constexpr (skein::detail::is_batched<Scalar>) {
    using V = skein::detail::Batch<Scalar>;
    constexpr long lanes = skein::detail::batch_size<Scalar>;
    long i = 0;
#pragma GCC unroll 2
    for (; i + lanes <= n; i += lanes) f(V::load_unaligned(x + i)).store_unaligned(y + i);
    if (i < n) skein::detail::store_part(y + i, f(skein::detail::load_part(x + i, n - i)), n - i);
  } else {
    for (long i = 0; i < n; ++i) y[i] = f(x[i]);
  }
}

template <class Function, class Scalar> void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
  if constexpr (skein::detail::is_batched<Scalar>) {
    using V = skein::detail::Batch<Scalar>;
    constexpr long lanes = skein::detail::batch_size<Scalar>;
    long i = 0;
#pragma GCC unroll 2
    for (; i + lanes <= n; i += lanes) f(V::load_unaligned(a + i), V::load_unaligned(b + i)).store_unaligned(y + i);
    if (i < n) skein::detail::store_part(y + i, f(skein::detail::load_part(a + i, n - i), skein::detail::load_part(b + i, n - i)), n - i);
  } else {
    for (long i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
