// SPDX-License-Identifier: Apache-2.0
// Data sets out of arrays that a program has: numbers in, numbers or class numbers out. Values are copied once.
#pragma once
#include <array>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "in_memory.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
template <class T> struct ArrayLength { static constexpr int value = 0; using number = T; };
template <class T, std::size_t N> struct ArrayLength<std::array<T, N>> { static constexpr int value = N; using number = T; };

/// A range of numbers or of std::array of numbers.
template <class Range> concept Numbers =
    std::ranges::input_range<Range> && std::is_arithmetic_v<typename ArrayLength<std::ranges::range_value_t<Range>>::number>;
template <class Range> using NumberOf = typename ArrayLength<std::ranges::range_value_t<Range>>::number;
template <class Range> inline constexpr int numbers_each = ArrayLength<std::ranges::range_value_t<Range>>::value;

template <class To, class Range> std::vector<To> flatten(const Range& range) {
  std::vector<To> flat;
  if constexpr (std::ranges::sized_range<const Range>)
    flat.reserve(static_cast<std::size_t>(std::ranges::size(range)) * static_cast<std::size_t>(numbers_each<Range> ? numbers_each<Range> : 1));
  for (const auto& item : range) {
    if constexpr (numbers_each<Range> > 0) for (const auto& number : item) flat.push_back(static_cast<To>(number));
    else flat.push_back(static_cast<To>(item));
  }
  return flat;
}

template <class X> using StoredFor = std::conditional_t<std::is_same_v<NumberOf<X>, double>, double,
                                     std::conditional_t<std::is_same_v<NumberOf<X>, std::uint8_t>, std::uint8_t, float>>;

template <class X> consteval void assert_numbers() {
  static_assert(Numbers<X>, "data::from_tensors takes ranges of numbers or of std::array of numbers, such as std::vector<float>");
}

inline int length_of(std::size_t values, std::int64_t samples, const char* what) {
  if (samples == 0 || values % static_cast<std::size_t>(samples) != 0)
    throw ShapeError(std::string("from_tensors: ") + std::to_string(values) + " " + what + " cannot belong to " + std::to_string(samples) + " samples");
  return static_cast<int>(values / static_cast<std::size_t>(samples));
}
}  // namespace detail

/// Samples of the given extents, dense one after another in x, with targets y: integers are class numbers (one a sample), other
/// numbers are target vectors (as many values a sample as there are). Throws ShapeError where counts do not fit.
template <class X, class Y> auto from_tensors(const X& x, Extents sample, const Y& y) {
  detail::assert_numbers<X>();
  detail::assert_numbers<Y>();
  if constexpr (detail::Numbers<X> && detail::Numbers<Y>) {
    using Stored = detail::StoredFor<X>;
    auto samples = detail::flatten<Stored>(x);
    if constexpr (std::is_integral_v<detail::NumberOf<Y>>) {
      return InMemory<Stored>(sample, std::move(samples), detail::flatten<std::int32_t>(y));
    } else {
      auto targets = detail::flatten<typename InMemory<Stored>::Real>(y);
      const long count = sample.count();
      const int length = detail::length_of(targets.size(), count > 0 ? static_cast<std::int64_t>(samples.size()) / count : 0, "target values");
      return InMemory<Stored>(sample, std::move(samples), std::move(targets), length);
    }
  }
}

/// One sample for each item of x, which is a number (a function of one variable) or a std::array of numbers (of several); y as above.
template <class X, class Y> requires(!std::is_same_v<Y, Extents>) auto from_tensors(const X& x, const Y& y) {
  detail::assert_numbers<X>();
  if constexpr (detail::Numbers<X>) {
    constexpr int each = detail::numbers_each<X> > 0 ? detail::numbers_each<X> : 1;
    return from_tensors(x, Extents{1, {each}}, y);
  }
}

/// Samples without targets, for predictions.
template <class X> auto from_tensors(const X& x, Extents sample) {
  detail::assert_numbers<X>();
  if constexpr (detail::Numbers<X>) {
    using Stored = detail::StoredFor<X>;
    return InMemory<Stored>(sample, detail::flatten<Stored>(x));
  }
}

}  // namespace skein::inline SKEIN_ABI::data
