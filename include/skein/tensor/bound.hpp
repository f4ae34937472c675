// SPDX-License-Identifier: Apache-2.0
// The second tree of an expression: trivially copyable, only pointers, strides and function objects, all leaves broadcast to
// the extents of one loop. A kernel can take it by value. Evaluators walk it by advance() and read values by at(), xsimd batches
// by batch() (Cpu), groups of 16 bytes by pack() (Cuda). Who holds the memory is the user's tree (expression.hpp), which outlives
// it.
#pragma once
#include <type_traits>
#include <utility>

#include "dims.hpp"
#include "simd.hpp"

namespace skein::inline SKEIN_ABI::detail {

/// How a row is read: every leaf's innermost stride is 1; or whatever it says.
enum class Access { unit, strided };

/// W neighbouring values, moved by one instruction where W of them are 16 bytes.
template <class S, int W> struct alignas(sizeof(S) * W) Pack {
  using Scalar = S;
  S value[W];
};
/// A pointer to values as one to whole packs; it is aligned so.
template <int W, class S> SKEIN_HOST_DEVICE inline auto as_pack(S* p) {
  using P = std::conditional_t<std::is_const_v<S>, const Pack<std::remove_const_t<S>, W>, Pack<S, W>>;
  return reinterpret_cast<P*>(p);
}

/// The strides of a leaf of rank R, broadcast to N >= R axes of the extents `to`.
template <int N, int R> constexpr Dims<N> broadcast_strides(const Dims<R>& extents, const Dims<R>& strides) {
  Dims<N> s;
  for (int i = 0; i < R; ++i) s.e[N - R + i] = extents.e[i] == 1 ? 0 : strides.e[i];
  return s;
}

/// Values in memory.
template <class S, int N> struct BoundView {
  using Scalar = S;
  using Lane = S;
  static constexpr int widest = sizeof(S);  // bytes of the widest value in memory below
  const S* data;
  Dims<N> stride;

  SKEIN_ALWAYS_INLINE constexpr void advance(int d, long n) { data += stride.e[d] * n; }
  template <Access A> SKEIN_ALWAYS_INLINE constexpr S at(long i) const {
    if constexpr (A == Access::unit) return data[i];
    else return data[i * stride.e[N - 1]];
  }
  template <Access A> SKEIN_ALWAYS_INLINE auto batch(long i) const {
    if constexpr (A == Access::unit) return Batch<S>::load_unaligned(data + i);
    else return load_strided(data + i * stride.e[N - 1], stride.e[N - 1], batch_size<S>);
  }
  template <Access A> SKEIN_ALWAYS_INLINE auto part(long i, long k) const {
    if constexpr (A == Access::unit) return load_part(data + i, k);
    else return load_strided(data + i * stride.e[N - 1], stride.e[N - 1], k);
  }
  /// The innermost stride is 1 and data + i aligned to a pack; or it is 0.
  template <int W> SKEIN_HOST_DEVICE Pack<S, W> pack(long i) const {
    if (stride.e[N - 1] != 0) return *as_pack<W>(data + i);
    Pack<S, W> p;
    for (int j = 0; j < W; ++j) p.value[j] = *data;
    return p;
  }
  template <class V> SKEIN_ALWAYS_INLINE constexpr void leaves(V&& visit) { visit(*this); }
};

/// One value everywhere.
template <class S, int N> struct BoundConstant {
  using Scalar = S;
  using Lane = S;
  static constexpr int widest = 1;
  S value;
  SKEIN_ALWAYS_INLINE constexpr void advance(int, long) {}
  template <Access A> SKEIN_ALWAYS_INLINE constexpr S at(long) const { return value; }
  template <Access A> SKEIN_ALWAYS_INLINE auto batch(long) const { return Batch<S>(value); }
  template <Access A> SKEIN_ALWAYS_INLINE auto part(long, long) const { return Batch<S>(value); }
  template <int W> constexpr Pack<S, W> pack(long) const {
    Pack<S, W> p{};
    for (int j = 0; j < W; ++j) p.value[j] = value;
    return p;
  }
  template <class V> SKEIN_ALWAYS_INLINE constexpr void leaves(V&&) {}
};

/// A function of the logical row-major index: arange, random fills.
template <class G, int N> struct BoundGenerator {
  using Scalar = decltype(std::declval<const G&>()(0L));
  using Lane = void;
  static constexpr int widest = 1;
  G generate;
  long index;
  Dims<N> stride;
  SKEIN_ALWAYS_INLINE constexpr void advance(int d, long n) { index += stride.e[d] * n; }
  template <Access A> SKEIN_ALWAYS_INLINE constexpr Scalar at(long i) const {
    if constexpr (A == Access::unit) return generate(index + i);
    else return generate(index + i * stride.e[N - 1]);
  }
  template <int W> constexpr Pack<Scalar, W> pack(long i) const {
    Pack<Scalar, W> p{};
    for (int j = 0; j < W; ++j) p.value[j] = generate(index + (i + j) * stride.e[N - 1]);
    return p;
  }
  template <class V> SKEIN_ALWAYS_INLINE constexpr void leaves(V&& visit) { visit(*this); }
};

template <int I, class T> struct Slot { T value; };

template <class F> inline constexpr bool takes_batches = requires { typename F::vectorizes; };
/// Which arguments of F may be masks: bit i for the i-th.
template <class F> inline constexpr unsigned takes_masks = 0;
template <class F>
requires requires { F::masks; }
inline constexpr unsigned takes_masks<F> = F::masks;
/// F has lanes: it takes batches, its arguments have the same, and none of them is a mask which F would take for numbers.
template <class F, class First, class... Rest> consteval bool has_lanes() {
  if (!takes_batches<F> || !(std::is_same_v<typename First::Lane, typename Rest::Lane> && ...)) return false;
  const bool is_mask[] = {std::is_same_v<typename First::Scalar, bool>, std::is_same_v<typename Rest::Scalar, bool>...};
  constexpr unsigned allowed = takes_masks<F>;
  for (unsigned i = 0; i < 1 + sizeof...(Rest); ++i)
    if (is_mask[i] && (allowed >> i & 1u) == 0) return false;
  return true;
}
template <class F, class First, class... Rest> struct LaneOf {
  using type = std::conditional_t<has_lanes<F, First, Rest...>(), typename First::Lane, void>;
};

/// f of its arguments, value by value. The argument I is slot I.
template <class F, class Indices, class... Args> struct BoundMap;
template <class F, int... I, class... Args> struct BoundMap<F, std::integer_sequence<int, I...>, Args...> : Slot<I, Args>... {
  using Scalar = std::remove_cvref_t<decltype(std::declval<const F&>()(std::declval<typename Args::Scalar>()...))>;
  using Lane = typename LaneOf<F, Args...>::type;
  static constexpr int widest = [] {
    int w = 1;
    ((w = Args::widest > w ? Args::widest : w), ...);
    return w;
  }();
  F f;

  constexpr BoundMap(const F& function, const Args&... args) : Slot<I, Args>{args}..., f(function) {}
  SKEIN_ALWAYS_INLINE constexpr void advance(int d, long n) { (static_cast<Slot<I, Args>&>(*this).value.advance(d, n), ...); }
  template <Access A> SKEIN_ALWAYS_INLINE constexpr Scalar at(long i) const {
    return f(static_cast<const Slot<I, Args>&>(*this).value.template at<A>(i)...);
  }
  template <Access A> SKEIN_ALWAYS_INLINE auto batch(long i) const {
    return f(static_cast<const Slot<I, Args>&>(*this).value.template batch<A>(i)...);
  }
  template <Access A> SKEIN_ALWAYS_INLINE auto part(long i, long k) const {
    return f(static_cast<const Slot<I, Args>&>(*this).value.template part<A>(i, k)...);
  }
  template <int W> constexpr Pack<Scalar, W> pack(long i) const {
    return joined<W>(static_cast<const Slot<I, Args>&>(*this).value.template pack<W>(i)...);
  }
  template <class V> SKEIN_ALWAYS_INLINE constexpr void leaves(V&& visit) {
    (static_cast<Slot<I, Args>&>(*this).value.leaves(visit), ...);
  }

 private:
  template <int W, class... P> constexpr Pack<Scalar, W> joined(const P&... args) const {
    Pack<Scalar, W> p{};
    for (int j = 0; j < W; ++j) p.value[j] = f(args.value[j]...);
    return p;
  }
};

}  // namespace skein::inline SKEIN_ABI::detail
