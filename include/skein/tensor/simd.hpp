// SPDX-License-Identifier: Apache-2.0
// Vectors for the evaluator: xsimd batches of float and double where SKEIN_WITH_XSIMD is set, with loads and stores of a
// part of a batch and of strided values. Everything is computed in whole batches, tails and strided rows too, so that a
// value does not depend on its position in a row; but for sin and cos, of which xsimd chooses the reduction by all lanes of a
// batch, so that the last bits may differ beside other values. Without xsimd nothing is Batched and the evaluator's plain loops
// run.
#pragma once
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "../core/config.hpp"
#if SKEIN_WITH_XSIMD
SKEIN_BEGIN_INTRINSICS
#include <xsimd/xsimd.hpp>
SKEIN_END_INTRINSICS
#if XSIMD_VERSION_MAJOR != 8
#error "skein takes xsimd 8, 9 has other names: let its headers come first, or compile with -DSKEIN_WITH_XSIMD=0"
#endif
#endif

namespace skein::inline SKEIN_ABI::detail {

#if SKEIN_WITH_XSIMD && !defined(XSIMD_NO_SUPPORTED_ARCHITECTURE)

template <class S> inline constexpr bool is_batched = std::same_as<S, float> || std::same_as<S, double>;
template <class S> using Batch = xsimd::batch<S>;
template <class S> inline constexpr long batch_size = static_cast<long>(xsimd::batch<S>::size);

#if defined(__AVX2__) && !defined(__AVX512F__)
alignas(64) inline constexpr int lane_mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#endif

/// The first k values (0 < k < size); the other lanes are zero.
template <class S> SKEIN_ALWAYS_INLINE Batch<S> load_part(const S* p, long k) {
#if defined(__AVX512F__)
  if constexpr (std::same_as<S, float>) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << k) - 1u), p);
  else return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << k) - 1u), p);
#elif defined(__AVX2__)
  if constexpr (std::same_as<S, float>)
    return _mm256_maskload_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane_mask + 8 - k)));
  else return _mm256_maskload_pd(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane_mask + 8 - 2 * k)));
#else
  alignas(64) S lanes[batch_size<S>] = {};
  for (long j = 0; j < k; ++j) lanes[j] = p[j];
  return Batch<S>::load_aligned(lanes);
#endif
}

/// Writes the first k lanes, and nothing behind them.
template <class S> SKEIN_ALWAYS_INLINE void store_part(S* p, const Batch<S>& b, long k) {
#if defined(__AVX512F__)
  if constexpr (std::same_as<S, float>) _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << k) - 1u), b);
  else _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << k) - 1u), b);
#elif defined(__AVX2__)
  if constexpr (std::same_as<S, float>)
    _mm256_maskstore_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane_mask + 8 - k)), b);
  else _mm256_maskstore_pd(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane_mask + 8 - 2 * k)), b);
#else
  alignas(64) S lanes[batch_size<S>];
  b.store_aligned(lanes);
  for (long j = 0; j < k; ++j) p[j] = lanes[j];
#endif
}

/// k values that lie `stride` apart (0: one value in all lanes).
template <class S> SKEIN_ALWAYS_INLINE Batch<S> load_strided(const S* p, long stride, long k) {
  if (stride == 0) return Batch<S>(*p);
  if (stride == 1) return k == batch_size<S> ? Batch<S>::load_unaligned(p) : load_part(p, k);
  alignas(64) S lanes[batch_size<S>] = {};
  for (long j = 0; j < k; ++j) lanes[j] = p[j * stride];
  return Batch<S>::load_aligned(lanes);
}

template <class S> SKEIN_ALWAYS_INLINE void store_strided(S* p, long stride, const Batch<S>& b, long k) {
  alignas(64) S lanes[batch_size<S>];
  b.store_aligned(lanes);
  for (long j = 0; j < k; ++j) p[j * stride] = lanes[j];
}

/// A mask becomes ones and zeros.
template <class S> SKEIN_ALWAYS_INLINE Batch<S> as_batch(const Batch<S>& b) { return b; }
template <class S> SKEIN_ALWAYS_INLINE Batch<S> as_batch(const xsimd::batch_bool<S>& b) {
  return xsimd::select(b, Batch<S>(S(1)), Batch<S>(S(0)));
}

template <class S, class A> SKEIN_ALWAYS_INLINE xsimd::batch<S, A> choose(const xsimd::batch_bool<S, A>& c,
                                                                          const xsimd::batch<S, A>& a,
                                                                          const xsimd::batch<S, A>& b) {
  return xsimd::select(c, a, b);
}

/// x^y, lane by lane: xsimd's is exp(y log x), which is none at 0 and infinity, and not exact where the result is a whole number.
template <class S, class A> SKEIN_NOINLINE xsimd::batch<S, A> power(const xsimd::batch<S, A>& x, const xsimd::batch<S, A>& y) {
  alignas(64) S base[xsimd::batch<S, A>::size], exponent[xsimd::batch<S, A>::size];
  x.store_aligned(base);
  y.store_aligned(exponent);
  for (std::size_t i = 0; i < xsimd::batch<S, A>::size; ++i) base[i] = std::pow(base[i], exponent[i]);
  return xsimd::batch<S, A>::load_aligned(base);
}

/// log(x), which xsimd's gets wrong for denormal doubles.
template <class A> SKEIN_ALWAYS_INLINE xsimd::batch<double, A> logarithm(const xsimd::batch<double, A>& x) {
  using V = xsimd::batch<double, A>;
  const auto small = x < V(std::numeric_limits<double>::min());
  return xsimd::log(xsimd::select(small, x * V(0x1p54), x)) - xsimd::select(small, V(37.429947750237048), V(0));  // 54 log 2
}
/// Where xsimd's exp is infinite, and the value is not yet: from here on it is the square of that of half x.
template <class S> inline constexpr S large_exponent = S(std::is_same_v<S, float> ? 88 : 709);
template <class S, class A> SKEIN_ALWAYS_INLINE xsimd::batch<S, A> exponential(const xsimd::batch<S, A>& x) {
  using V = xsimd::batch<S, A>;
  const auto large = x > V(large_exponent<S>);
  const V e = xsimd::exp(xsimd::select(large, x * V(S(0.5)), x));
  return xsimd::select(large, e * e, e);
}
template <class S, class A> SKEIN_ALWAYS_INLINE xsimd::batch<S, A> exponential_less_one(const xsimd::batch<S, A>& x) {
  using V = xsimd::batch<S, A>;
  const auto large = x > V(large_exponent<S>);
  return xsimd::any(large) ? xsimd::select(large, exponential(x), xsimd::expm1(x)) : xsimd::expm1(x);
}
/// From 6 on it is 1; of large doubles xsimd's is none.
template <class A> SKEIN_ALWAYS_INLINE xsimd::batch<double, A> error_function(const xsimd::batch<double, A>& x) {
  using V = xsimd::batch<double, A>;
  return xsimd::erf(xsimd::select(x > V(6.0), V(6.0), xsimd::select(x < V(-6.0), V(-6.0), x)));
}

#else

template <class S> inline constexpr bool is_batched = false;
template <class S> inline constexpr long batch_size = 1;
template <class S> struct Batch;
template <class S> S as_batch(const S& x);  // declared for lookup, never called
template <class S> void store_part(S*, const Batch<S>&, long);
template <class S> void store_strided(S*, long, const Batch<S>&, long);

#endif

template <class S> constexpr S choose(bool c, S a, S b) { return c ? a : b; }
template <class T> SKEIN_ALWAYS_INLINE constexpr auto logarithm(const T& x) {
  using std::log;
  return log(x);
}
template <class T> SKEIN_ALWAYS_INLINE constexpr auto exponential(const T& x) {
  using std::exp;
  return exp(x);
}
template <class T> SKEIN_ALWAYS_INLINE constexpr auto exponential_less_one(const T& x) {
  using std::expm1;
  return expm1(x);
}
template <class T> SKEIN_ALWAYS_INLINE constexpr auto error_function(const T& x) {
  using std::erf;
  return erf(x);
}
template <class T, class U> SKEIN_ALWAYS_INLINE constexpr auto power(const T& x, const U& y) {
  using std::pow;
  return pow(x, y);
}
/// x^y of whole numbers, exactly; where it is too large, its lowest bits, as those of a product. x^-y is 1 / x^y without its
/// fraction, and 0 where x is 0.
template <std::integral T> constexpr T power(const T& x, const T& y) {
  if constexpr (std::is_signed_v<T>)
    if (y < 0) return x == 1 || (x == -1 && y % 2 == 0) ? T(1) : x == -1 ? T(-1) : T(0);
  unsigned long result = 1, base = static_cast<unsigned long>(x);
  for (unsigned long n = static_cast<unsigned long>(y); n > 0; n /= 2, base *= base)
    if (n % 2 != 0) result *= base;
  return static_cast<T>(result);
}

/// x / y; of whole numbers 0 where y is 0, as NumPy has it: the processor would end the program.
template <class T, class U> SKEIN_ALWAYS_INLINE constexpr auto quotient(const T& x, const U& y) { return x / y; }
template <std::integral T> SKEIN_ALWAYS_INLINE constexpr auto quotient(const T& x, const T& y) {
  using Quotient = decltype(x / y);
  if (y == T(0)) return Quotient(0);
  if constexpr (std::is_signed_v<T>)  // the least number by -1 is none
    if (y == T(-1)) return static_cast<Quotient>(0u - static_cast<std::make_unsigned_t<Quotient>>(x));
  return static_cast<Quotient>(x / y);
}

}  // namespace skein::inline SKEIN_ABI::detail
