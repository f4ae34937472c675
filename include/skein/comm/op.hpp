// SPDX-License-Identifier: Apache-2.0
// The operations of reductions: Sum, Mean, Max, Min, and what a user's own functor must be. Built-in and user-defined
// reductions are separate concepts, since NCCL knows only the former.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "../core/half.hpp"

namespace skein::inline SKEIN_ABI {

/// The sum over the ranks. Integers wrap around. Communicators of the host add within one machine in the order of the ranks,
/// ((x0 + x1) + x2) + ...
struct Sum {
  static constexpr std::string_view name = "Sum";
  template <class T> constexpr T operator()(T a, T b) const { return static_cast<T>(a + b); }
  template <std::signed_integral T> constexpr T operator()(T a, T b) const {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  }
};

/// The sum over the ranks times 1 / ranks (integers: the Sum, which wraps around, divided and truncated).
struct Mean {
  static constexpr std::string_view name = "Mean";
  template <class T> constexpr T operator()(T a, T b) const { return Sum{}(a, b); }
};

/// The largest value of any rank; a NaN of any rank wins.
struct Max {
  static constexpr std::string_view name = "Max";
  template <class T> constexpr T operator()(T a, T b) const { return ((b > a) | (b != b)) ? b : a; }
};

/// The smallest value of any rank; a NaN of any rank wins.
struct Min {
  static constexpr std::string_view name = "Min";
  template <class T> constexpr T operator()(T a, T b) const { return ((b < a) | (b != b)) ? b : a; }
};

/// One of Sum, Mean, Max, Min: what every communicator can do, on every device.
template <class Op> concept BuiltinReduction =
    std::same_as<Op, Sum> || std::same_as<Op, Mean> || std::same_as<Op, Max> || std::same_as<Op, Min>;

/// A scalar that every communicator reduces.
template <class T>
concept BuiltinScalar = (std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, long double>) || is_half<T>;

/// What can be sent between ranks as its bytes.
template <class T> concept Transportable = std::is_trivially_copyable_v<T>;

/// A function object T(T, T) of the user's, copied by its bytes (at most 32). It need not commute: values meet in the order of
/// the ranks; it must be associative only in so far as the caller minds. T is aligned to 16 bytes at most, as the buffers are in
/// which values of other ranks come.
template <class Op, class T> concept UserReduction =
    !BuiltinReduction<Op> && Transportable<T> && std::is_trivially_copyable_v<Op> && sizeof(Op) <= 32 && alignof(Op) <= 16 &&
    sizeof(T) <= 256 && alignof(T) <= 16 && requires(const Op& op, const T& a, const T& b) {
  { op(a, b) } -> std::convertible_to<T>;
};

/// What the communicators of the host reduce.
template <class Op, class T> concept Reduction = (BuiltinReduction<Op> && BuiltinScalar<T>) || UserReduction<Op, T>;

}  // namespace skein::inline SKEIN_ABI
