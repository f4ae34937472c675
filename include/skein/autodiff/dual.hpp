// SPDX-License-Identifier: Apache-2.0
// Dual numbers: a value and its derivative, carried through arithmetic and the usual functions, so that a function written once
// gives both. Over scalars and over vectors alike. (Forward-mode differentiation: Clifford 1873; Griewank and Walther, 2008.)
#pragma once
#include <cmath>
#include <concepts>
#include <type_traits>

#include "../tensor/simd.hpp"

namespace skein::inline SKEIN_ABI::autodiff {

namespace detail {
/// The scalar of T: vectors name theirs.
template <class T> struct ScalarOf { using type = typename T::value_type; };
template <class T>
requires std::is_arithmetic_v<T>
struct ScalarOf<T> {
  using type = T;
};
template <class> inline constexpr bool lanes_agree = false;
}  // namespace detail

/// What holds in each lane of a vector: a condition for where, and no bool. (A mask may be a number, and that a bool.)
template <class Mask> struct Lanes {
  Mask mask;
  friend constexpr Lanes operator&(const Lanes& a, const Lanes& b) { return {a.mask & b.mask}; }
  friend constexpr Lanes operator|(const Lanes& a, const Lanes& b) { return {a.mask | b.mask}; }
  friend constexpr Lanes operator&&(const Lanes& a, const Lanes& b) { return {a.mask & b.mask}; }
  friend constexpr Lanes operator||(const Lanes& a, const Lanes& b) { return {a.mask | b.mask}; }
  constexpr Lanes operator!() const { return {!mask}; }
  template <std::same_as<bool> Bool> constexpr explicit operator Bool() const {
    static_assert(detail::lanes_agree<Mask>,
                  "a function of dual numbers runs over vectors, whose lanes differ: write where(x < 0, a, b) for ?: and if, "
                  "max(x, y) for std::max(x, y), and no bool beside a comparison");
    return false;
  }
};

namespace detail {
constexpr bool compared(bool holds) { return holds; }
template <class Mask>
requires(!std::same_as<Mask, bool>) constexpr Lanes<Mask> compared(const Mask& mask) { return {mask}; }
}  // namespace detail

/// value + slope e with e^2 = 0. T: float, double, or a vector of them. Plain numbers mix in as constants; functions are found
/// by their arguments: write exp(x), not std::exp(x). Branch with where(x < 0, a, b): a vector's lanes differ.
template <class T> struct Dual {
  using Scalar = typename detail::ScalarOf<T>::type;
  T value{}, derivative{};

  constexpr Dual() = default;
  constexpr Dual(const T& v, const T& s) : value(v), derivative(s) {}
  /// A constant.
  constexpr explicit Dual(const T& v) requires(!std::is_arithmetic_v<T>) : value(v), derivative(T(0)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr Dual(Number n) : value(T(static_cast<Scalar>(n))), derivative(T(0)) {}

  constexpr Dual operator-() const { return {-value, -derivative}; }
  constexpr Dual operator+() const { return *this; }
  friend constexpr Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.derivative + b.derivative}; }
  friend constexpr Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.derivative - b.derivative}; }
  friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
  }
  friend constexpr Dual operator/(const Dual& a, const Dual& b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.derivative - quotient * b.derivative) / b.value};
  }
  constexpr Dual& operator+=(const Dual& b) { return *this = *this + b; }
  constexpr Dual& operator-=(const Dual& b) { return *this = *this - b; }
  constexpr Dual& operator*=(const Dual& b) { return *this = *this * b; }
  constexpr Dual& operator/=(const Dual& b) { return *this = *this / b; }

  // Comparisons look at the values: a bool, or what holds in each lane.
  friend constexpr auto operator<(const Dual& a, const Dual& b) { return detail::compared(a.value < b.value); }
  friend constexpr auto operator<=(const Dual& a, const Dual& b) { return detail::compared(a.value <= b.value); }
  friend constexpr auto operator>(const Dual& a, const Dual& b) { return detail::compared(a.value > b.value); }
  friend constexpr auto operator>=(const Dual& a, const Dual& b) { return detail::compared(a.value >= b.value); }
  friend constexpr auto operator==(const Dual& a, const Dual& b) { return detail::compared(a.value == b.value); }
  friend constexpr auto operator!=(const Dual& a, const Dual& b) { return detail::compared(!(a.value == b.value)); }

  /// condition ? a : b, lane by lane.
  template <class Condition> friend constexpr Dual where(const Condition& condition, const Dual& a, const Dual& b) {
    return {choose_one(condition, a.value, b.value), choose_one(condition, a.derivative, b.derivative)};
  }
  /// The greater and the smaller of two values: the first where both are equal, NaN where either is NaN.
  friend constexpr Dual max(const Dual& a, const Dual& b) { return where((a < b) | !(b == b), b, a); }
  friend constexpr Dual min(const Dual& a, const Dual& b) { return where((b < a) | !(b == b), b, a); }
  /// At 0 its derivative is 0.
  friend constexpr Dual abs(const Dual& x) { return where(x < Dual(0), -x, where(x == Dual(0), Dual(0), x)); }

  friend constexpr Dual maximum(const Dual& a, const Dual& b) { return max(a, b); }  // as functions of tensors are named
  friend constexpr Dual minimum(const Dual& a, const Dual& b) { return min(a, b); }
  friend constexpr Dual square(const Dual& x) { return x * x; }

  friend constexpr Dual exp(const Dual& x) {
    const T e = skein::detail::exponential(x.value);
    return {e, x.derivative * e};
  }
  friend constexpr Dual expm1(const Dual& x) {
    const T e = skein::detail::exponential_less_one(x.value);
    return {e, x.derivative * (e + T(1))};
  }
  friend constexpr Dual log(const Dual& x) { return {skein::detail::logarithm(x.value), x.derivative / x.value}; }
  friend constexpr Dual log1p(const Dual& x) {
    using std::log1p;
    return {log1p(x.value), x.derivative / (T(1) + x.value)};
  }
  friend constexpr Dual sqrt(const Dual& x) {
    using std::sqrt;
    const T root = sqrt(x.value);
    return {root, x.derivative * T(Scalar(0.5)) / root};
  }
  friend constexpr Dual sin(const Dual& x) {
    using std::cos, std::sin;
    return {sin(x.value), x.derivative * cos(x.value)};
  }
  friend constexpr Dual cos(const Dual& x) {
    using std::cos, std::sin;
    return {cos(x.value), -x.derivative * sin(x.value)};
  }
  friend constexpr Dual atan(const Dual& x) {
    using std::atan;
    return {atan(x.value), x.derivative / (T(1) + x.value * x.value)};
  }
  friend constexpr Dual sinh(const Dual& x) {
    using std::cosh, std::sinh;
    return {sinh(x.value), x.derivative * cosh(x.value)};
  }
  friend constexpr Dual cosh(const Dual& x) {
    using std::cosh, std::sinh;
    return {cosh(x.value), x.derivative * sinh(x.value)};
  }
  friend constexpr Dual tanh(const Dual& x) {
    using std::tanh;
    const T t = tanh(x.value);
    return {t, x.derivative * (T(1) - t * t)};
  }
  /// 1 / (1 + exp(-x)): where that exponential overflows, its derivative would be infinity times 0.
  friend constexpr Dual sigmoid(const Dual& x) {
    using std::exp;
    const T decay = exp(choose_one(x.value < T(0), x.value, -x.value)), whole = T(1) + decay;
    return {choose_one(x.value < T(0), decay, T(1)) / whole, x.derivative * decay / (whole * whole)};
  }
  friend constexpr Dual erf(const Dual& x) {
    using std::exp;
    return {skein::detail::error_function(x.value),
            x.derivative * T(Scalar(1.1283791670955126)) * exp(-x.value * x.value)};  // 2 / sqrt(pi)
  }
  /// x^p with a constant p.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  friend constexpr Dual pow(const Dual& x, Number p) {
    const T exponent(static_cast<Scalar>(p)), less(static_cast<Scalar>(p == 0 ? 0 : p - 1));  // of 1 = x^0 it is 0, also at 0
    return {skein::detail::power(x.value, exponent), x.derivative * exponent * skein::detail::power(x.value, less)};
  }
  /// x^p for positive x.
  friend constexpr Dual pow(const Dual& x, const Dual& p) { return exp(p * log(x)); }

 private:
  template <class Condition, class V> static constexpr V choose_one(const Condition& c, const V& a, const V& b) {
    return skein::detail::choose(c, a, b);
  }
  template <class Mask, class V> static constexpr V choose_one(const Lanes<Mask>& c, const V& a, const V& b) {
    return skein::detail::choose(c.mask, a, b);
  }
};

}  // namespace skein::inline SKEIN_ABI::autodiff

namespace skein::inline SKEIN_ABI {
using autodiff::Dual;
}
