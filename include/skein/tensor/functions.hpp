// SPDX-License-Identifier: Apache-2.0
// Operators and functions on expressions: arithmetic, comparison, logic, where, and the usual functions of one value. Each
// builds a node; nothing is computed before assignment. The function objects take scalars and batches alike.
#pragma once
#include <cmath>

#include "expression.hpp"

namespace skein::inline SKEIN_ABI {

namespace functions {
// A function object for each operator and function: plain types, so that they can be a kernel's template arguments.
#define SKEIN_FUNCTION_1(Name, ...)                                                                          \
  struct Name {                                                                                              \
    using vectorizes = void;                                                                                 \
    template <class T> SKEIN_ALWAYS_INLINE constexpr auto operator()(const T& x) const {                     \
      using std::abs, std::exp, std::log1p, std::sqrt, std::tanh, std::sin, std::cos, std::floor, std::ceil; \
      __VA_ARGS__;                                                                                           \
    }                                                                                                        \
  };
#define SKEIN_MASK_FUNCTION_2(Name, ...)                                                                                     \
  struct Name {                                                                                                              \
    using vectorizes = void;                                                                                                 \
    static constexpr unsigned masks = 3;                                                                                     \
    template <class T, class U> SKEIN_ALWAYS_INLINE constexpr auto operator()(const T& x, const U& y) const { __VA_ARGS__; } \
  };
#define SKEIN_FUNCTION_2(Name, ...)                                                                                          \
  struct Name {                                                                                                              \
    using vectorizes = void;                                                                                                 \
    template <class T, class U> SKEIN_ALWAYS_INLINE constexpr auto operator()(const T& x, const U& y) const { __VA_ARGS__; } \
  };

SKEIN_FUNCTION_2(Plus, return x + y)
SKEIN_FUNCTION_2(Minus, return x - y)
SKEIN_FUNCTION_2(Times, return x * y)
SKEIN_FUNCTION_2(Divides, return detail::quotient(x, y))
SKEIN_FUNCTION_2(Less, return x < y)
SKEIN_FUNCTION_2(LessEqual, return x <= y)
SKEIN_FUNCTION_2(Greater, return x > y)
SKEIN_FUNCTION_2(GreaterEqual, return x >= y)
SKEIN_MASK_FUNCTION_2(Equal, return x == y)
SKEIN_MASK_FUNCTION_2(NotEqual, return !(x == y))  // xsimd's != is false for NaNs
SKEIN_MASK_FUNCTION_2(And, return T(x & y))
SKEIN_MASK_FUNCTION_2(Or, return T(x | y))
SKEIN_FUNCTION_2(Minimum, return detail::choose((y < x) | !(y == y), y, x))  // what is not a number stays
SKEIN_FUNCTION_2(Maximum, return detail::choose((x < y) | !(y == y), y, x))
SKEIN_FUNCTION_2(LesserNumber, return detail::choose(y < x, y, x))  // beside what is not a number the first
SKEIN_FUNCTION_2(GreaterNumber, return detail::choose(x < y, y, x))
SKEIN_FUNCTION_2(Power, return T(detail::power(x, y)))

SKEIN_FUNCTION_1(Negate, return T(x * T(-1)))  // xsimd's -0 is 0
SKEIN_FUNCTION_1(Abs, if constexpr (std::is_unsigned_v<T>) return x; else return T(abs(x)))
SKEIN_FUNCTION_1(Exp, return T(detail::exponential(x)))
SKEIN_FUNCTION_1(Expm1, return T(detail::exponential_less_one(x)))
SKEIN_FUNCTION_1(Log, return T(detail::logarithm(x)))
SKEIN_FUNCTION_1(Log1p, return T(log1p(x)))
SKEIN_FUNCTION_1(Sqrt, return T(sqrt(x)))
SKEIN_FUNCTION_1(Square, return T(x * x))
SKEIN_FUNCTION_1(Sin, return T(sin(x)))
SKEIN_FUNCTION_1(Cos, return T(cos(x)))
SKEIN_FUNCTION_1(Tanh, return T(tanh(x)))
SKEIN_FUNCTION_1(Erf, return T(detail::error_function(x)))
// Whole numbers as they are: a double does not hold all of 64 bits.
SKEIN_FUNCTION_1(Floor, if constexpr (std::is_integral_v<T>) return x; else return T(floor(x)))
SKEIN_FUNCTION_1(Ceil, if constexpr (std::is_integral_v<T>) return x; else return T(ceil(x)))
SKEIN_FUNCTION_1(Sigmoid, return T(T(1) / (T(1) + exp(-x))))
SKEIN_FUNCTION_1(Relu, return detail::choose(x < T(0), T(0), x))
SKEIN_FUNCTION_1(Sign, return detail::choose(x > T(0), T(1), detail::choose(x < T(0), T(-1), x)))

struct Not {
  using vectorizes = void;
  static constexpr unsigned masks = 1;
  template <class T> SKEIN_ALWAYS_INLINE constexpr T operator()(const T& x) const { return T(!x); }
};
/// c ? a : b
struct Where {
  using vectorizes = void;
  static constexpr unsigned masks = 1;  // the first
  template <class C, class T> SKEIN_ALWAYS_INLINE constexpr T operator()(const C& c, const T& a, const T& b) const {
    return detail::choose(c, a, b);
  }
};
/// The value as another scalar.
template <class To> struct Cast {
  template <class T> SKEIN_ALWAYS_INLINE constexpr To operator()(const T& x) const { return static_cast<To>(x); }
};
#undef SKEIN_FUNCTION_1
#undef SKEIN_FUNCTION_2
#undef SKEIN_MASK_FUNCTION_2
}  // namespace functions

#define SKEIN_OPERATOR(op, Function)                                                           \
  template <class A, class B>                                                                  \
  requires BinaryOperands<A, B>                                                                \
  constexpr auto operator op(A&& a, B&& b) {                                                   \
    return detail::checked_pair(functions::Function{}, detail::operand<B>(std::forward<A>(a)), \
                                detail::operand<A>(std::forward<B>(b)));                       \
  }
SKEIN_OPERATOR(+, Plus)
SKEIN_OPERATOR(-, Minus)
SKEIN_OPERATOR(*, Times)
SKEIN_OPERATOR(/, Divides)
SKEIN_OPERATOR(<, Less)
SKEIN_OPERATOR(<=, LessEqual)
SKEIN_OPERATOR(>, Greater)
SKEIN_OPERATOR(>=, GreaterEqual)
SKEIN_OPERATOR(==, Equal)
SKEIN_OPERATOR(!=, NotEqual)
#undef SKEIN_OPERATOR

namespace detail {
template <class A, class B> inline constexpr bool are_masks =
    !A::sound || !B::sound || (std::is_same_v<typename A::Scalar, bool> && std::is_same_v<typename B::Scalar, bool>);
template <class F, class A, class B> constexpr auto mask_pair(F f, A a, B b) {
  if constexpr (are_masks<A, B>) {
    return checked_pair(f, std::move(a), std::move(b));
  } else {
    static_assert(are_masks<A, B>, "&& and || take masks: compare expressions to get them, (a != 0) && (b != 0)");
    return Unsound<A>{std::move(a)};
  }
}
}  // namespace detail

/// Both masks; either mask. (Both sides are always evaluated.)
template <TensorExpression A, TensorExpression B> constexpr auto operator&&(A&& a, B&& b) {
  return detail::mask_pair(functions::And{}, detail::leaf(std::forward<A>(a)), detail::leaf(std::forward<B>(b)));
}
template <TensorExpression A, TensorExpression B> constexpr auto operator||(A&& a, B&& b) {
  return detail::mask_pair(functions::Or{}, detail::leaf(std::forward<A>(a)), detail::leaf(std::forward<B>(b)));
}

#define SKEIN_BINARY(name, Function)                                                           \
  template <class A, class B>                                                                  \
  requires BinaryOperands<A, B>                                                                \
  constexpr auto name(A&& a, B&& b) {                                                          \
    return detail::checked_pair(functions::Function{}, detail::operand<B>(std::forward<A>(a)), \
                                detail::operand<A>(std::forward<B>(b)));                       \
  }
/// The smaller, the larger of two values (min and max are the reductions); not a number, where either is none.
SKEIN_BINARY(minimum, Minimum)
SKEIN_BINARY(maximum, Maximum)
SKEIN_BINARY(pow, Power)
#undef SKEIN_BINARY

namespace detail {
template <class A> inline constexpr bool is_real = !A::sound || !std::is_integral_v<typename A::Scalar>;
/// f of real numbers: of whole ones its values would be cut off.
template <class F, class A> constexpr auto real_map(F f, A a) {
  if constexpr (is_real<A>) {
    return checked_map(f, std::move(a));
  } else {
    static_assert(is_real<A>, "a function of real numbers is called with integers: convert them with cast<float>() first");
    return Unsound<A>{std::move(a)};
  }
}
}  // namespace detail

#define SKEIN_UNARY(name, Function) \
  template <TensorExpression A> constexpr auto name(A&& a) { return map(functions::Function{}, std::forward<A>(a)); }
#define SKEIN_REAL(name, Function)                                                    \
  template <TensorExpression A> constexpr auto name(A&& a) {                          \
    return detail::real_map(functions::Function{}, detail::leaf(std::forward<A>(a))); \
  }
SKEIN_UNARY(operator-, Negate)
SKEIN_UNARY(operator!, Not)
SKEIN_UNARY(abs, Abs)
SKEIN_REAL(exp, Exp)
SKEIN_REAL(expm1, Expm1)
SKEIN_REAL(log, Log)
SKEIN_REAL(log1p, Log1p)
SKEIN_REAL(sqrt, Sqrt)
SKEIN_UNARY(square, Square)
SKEIN_REAL(sin, Sin)
SKEIN_REAL(cos, Cos)
SKEIN_REAL(tanh, Tanh)
SKEIN_REAL(erf, Erf)
SKEIN_UNARY(floor, Floor)
SKEIN_UNARY(ceil, Ceil)
SKEIN_REAL(sigmoid, Sigmoid)
SKEIN_UNARY(relu, Relu)
SKEIN_UNARY(sign, Sign)
#undef SKEIN_REAL
#undef SKEIN_UNARY

/// The values as another scalar type.
template <class To, TensorExpression A> constexpr auto cast(A&& a) { return map(functions::Cast<To>{}, std::forward<A>(a)); }

namespace detail {
template <class Mask> constexpr void assert_mask() {
  static_assert(std::is_same_v<typename Mask::Scalar, bool>, "where takes a mask first: compare two expressions to get one");
}
template <class C, class A, class B> constexpr auto choice(C condition, A a, B b) {
  if constexpr (!same_scalars<A, B>) {
    assert_same_scalars<A, B>();
    return Unsound<A>{std::move(a)};
  } else {
    return checked_map(functions::Where{}, std::move(condition), std::move(a), std::move(b));
  }
}
}  // namespace detail

/// where(a > 0, a, 0): the second where the mask holds, else the third. Numbers take the type of the tensor beside them.
template <TensorExpression C, class A, class B>
requires((TensorExpression<A> || Number<A>)&&(TensorExpression<B> || Number<B>)) constexpr auto where(C&& condition, A&& a,
                                                                                                      B&& b) {
  using detail::Constant, detail::leaf;
  using CheckedMask = std::remove_cvref_t<C>;
  if constexpr (CheckedMask::sound && !std::is_same_v<typename CheckedMask::Scalar, bool>) {
    detail::assert_mask<CheckedMask>();
    return detail::Unsound<decltype(leaf(std::forward<C>(condition)))>{leaf(std::forward<C>(condition))};
  } else if constexpr (Number<A> && Number<B>) {
    using S = std::common_type_t<std::remove_cvref_t<A>, std::remove_cvref_t<B>>;
    return detail::choice(leaf(std::forward<C>(condition)), Constant<S>{static_cast<S>(a)}, Constant<S>{static_cast<S>(b)});
  } else if constexpr (Number<A>) {
    using S = typename std::remove_cvref_t<B>::Scalar;
    return detail::choice(leaf(std::forward<C>(condition)), detail::number_beside<S, std::remove_cvref_t<A>>(a),
                          leaf(std::forward<B>(b)));
  } else if constexpr (Number<B>) {
    using S = typename std::remove_cvref_t<A>::Scalar;
    return detail::choice(leaf(std::forward<C>(condition)), leaf(std::forward<A>(a)),
                          detail::number_beside<S, std::remove_cvref_t<B>>(b));
  } else {
    return detail::choice(leaf(std::forward<C>(condition)), leaf(std::forward<A>(a)), leaf(std::forward<B>(b)));
  }
}

}  // namespace skein::inline SKEIN_ABI
