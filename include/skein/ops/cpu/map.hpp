// SPDX-License-Identifier: Apache-2.0
// Elementwise passes in vectors; a part of a vector at the end is loaded and stored with a mask, so that a value does not depend
// on its position. Without xsimd, plain loops.
#pragma once
#include <type_traits>

#include "../../tensor/simd.hpp"

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
// Where the body of vector_by_vector stands: at a whole vector of its rows, at what is left of one, or at a single value.
#if SKEIN_WITH_XSIMD
template <class Scalar> struct AtVector {
  long i;
  SKEIN_ALWAYS_INLINE auto load(const Scalar* p) const { return skein::detail::Batch<Scalar>::load_unaligned(p + i); }
  SKEIN_ALWAYS_INLINE void store(Scalar* p, const skein::detail::Batch<Scalar>& v) const { v.store_unaligned(p + i); }
};
template <class Scalar> struct AtPart {
  long i, count;
  SKEIN_ALWAYS_INLINE auto load(const Scalar* p) const { return skein::detail::load_part(p + i, count); }
  SKEIN_ALWAYS_INLINE void store(Scalar* p, const skein::detail::Batch<Scalar>& v) const {
    skein::detail::store_part(p + i, v, count);
  }
};
#endif
template <class Scalar> struct AtValue {
  long i;
  SKEIN_ALWAYS_INLINE Scalar load(const Scalar* p) const { return p[i]; }
  SKEIN_ALWAYS_INLINE void store(Scalar* p, Scalar v) const { p[i] = v; }
};
}  // namespace detail

/// Calls body(at) for each vector of rows of n values. The body reads with at.load(row) and writes with at.store(row, vector), as
/// many rows as it likes.
template <class Scalar, class Body> SKEIN_ALWAYS_INLINE void vector_by_vector(long n, const Body& body) {
  long i = 0;
#if SKEIN_WITH_XSIMD
  if constexpr (skein::detail::is_batched<Scalar>) {
    constexpr long lanes = skein::detail::batch_size<Scalar>;
#pragma GCC unroll 2
    for (; i + lanes <= n; i += lanes) body(detail::AtVector<Scalar>{i});
    if (i < n) body(detail::AtPart<Scalar>{i, n - i});
  } else
#endif
    for (; i < n; ++i) body(detail::AtValue<Scalar>{i});
}

/// y[i] = f(x[i]) for n values, in vectors where f takes such. x and y may be the same array.
template <class Function, class Scalar> void map(Function f, long n, const Scalar* x, Scalar* y) {
  vector_by_vector<Scalar>(n, [&](const auto& at) { at.store(y, f(at.load(x))); });
}

/// y[i] = f(a[i], b[i]) for n values, in vectors where f takes such.
template <class Function, class Scalar> void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
  vector_by_vector<Scalar>(n, [&](const auto& at) { at.store(y, f(at.load(a), at.load(b))); });
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
