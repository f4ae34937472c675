// SPDX-License-Identifier: Apache-2.0
// The last, partial vector of a row, and a maximum over lanes, which xsimd 8 lacks. Only where xsimd is there.
#pragma once
#include "../../core/config.hpp"

#if SKEIN_WITH_XSIMD
SKEIN_BEGIN_INTRINSICS
#include <xsimd/xsimd.hpp>
SKEIN_END_INTRINSICS
#if XSIMD_VERSION_MAJOR != 8
#error "skein takes xsimd 8, 9 has other names: let its headers come first, or compile with -DSKEIN_WITH_XSIMD=0"
#endif

namespace skein::inline SKEIN_ABI::ops::cpu::detail {

/// n values; lanes from n on read as `fill`.
template <class Scalar, class From> SKEIN_ALWAYS_INLINE xsimd::batch<Scalar> load_part(const From* from, long n, Scalar fill) {
  alignas(64) Scalar lanes[xsimd::batch<Scalar>::size];
  for (long i = 0; i < static_cast<long>(xsimd::batch<Scalar>::size); ++i) lanes[i] = i < n ? static_cast<Scalar>(from[i]) : fill;
  return xsimd::batch<Scalar>::load_aligned(lanes);
}
/// Ones in the first n lanes, zeros behind.
template <class Scalar> SKEIN_ALWAYS_INLINE xsimd::batch<Scalar> load_ones(long n) {
  alignas(64) Scalar lanes[xsimd::batch<Scalar>::size];
  for (long i = 0; i < static_cast<long>(xsimd::batch<Scalar>::size); ++i) lanes[i] = i < n ? Scalar(1) : Scalar(0);
  return xsimd::batch<Scalar>::load_aligned(lanes);
}
/// Writes the first n lanes.
template <class Scalar> SKEIN_ALWAYS_INLINE void store_part(Scalar* to, const xsimd::batch<Scalar>& v, long n) {
  alignas(64) Scalar lanes[xsimd::batch<Scalar>::size];
  v.store_aligned(lanes);
  for (long i = 0; i < n; ++i) to[i] = lanes[i];
}
template <class Scalar> SKEIN_ALWAYS_INLINE Scalar greatest_lane(const xsimd::batch<Scalar>& v) {
  alignas(64) Scalar lanes[xsimd::batch<Scalar>::size];
  v.store_aligned(lanes);
  for (std::size_t half = xsimd::batch<Scalar>::size / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
  return lanes[0];
}

/// The partial vector at the end of rows of n values that lie `pitch` apart. Where the gap behind a row has room for the whole
/// vector (its content is not looked at, and becomes zero), it is read and written in one go.
template <class Scalar> class RowTail {
 public:
  using V = xsimd::batch<Scalar>;
  RowTail(long n, long pitch)
      : left_(n % static_cast<long>(V::size)), roomy_(n - left_ + static_cast<long>(V::size) <= pitch),
        inside_(load_ones<Scalar>(left_) > V(Scalar(0.5))) {}
  SKEIN_ALWAYS_INLINE V load(const Scalar* from, Scalar fill) const {
    return roomy_ ? xsimd::select(inside_, V::load_unaligned(from), V(fill)) : load_part<Scalar>(from, left_, fill);
  }
  SKEIN_ALWAYS_INLINE void store(Scalar* to, const V& v) const {
    if (roomy_) xsimd::select(inside_, v, V(Scalar(0))).store_unaligned(to);
    else store_part(to, v, left_);
  }

 private:
  long left_;
  bool roomy_;
  xsimd::batch_bool<Scalar> inside_;
};

/// whole(first) for each vector of n values, then part(first, left) for what is left.
template <class Scalar, class Whole, class Part> SKEIN_ALWAYS_INLINE void each_vector_of(long n, Whole&& whole, Part&& part) {
  constexpr long lanes = static_cast<long>(xsimd::batch<Scalar>::size);
  long c = 0;
  for (; c + lanes <= n; c += lanes) whole(c);
  if (c < n) part(c, n - c);
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu::detail
#endif
