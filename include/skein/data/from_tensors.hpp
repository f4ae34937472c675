// SPDX-License-Identifier: Apache-2.0
// Data sets out of arrays that a program has: numbers or tokens in, numbers or class numbers out. Values are copied once.
#pragma once
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../tensor/view.hpp"
#include "in_memory.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
template <class T> struct ArrayLength {
  static constexpr int value = 0;
  using number = T;
};
template <class T, std::size_t N> struct ArrayLength<std::array<T, N>> {
  static constexpr int value = N;
  using number = T;
};

/// What a range holds. Not by <ranges>, which the umbrella header would compile for this alone.
template <class T> using RangeValue = std::iter_value_t<decltype(std::ranges::begin(std::declval<const T&>()))>;
template <class T> inline constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
                                                        std::is_same_v<T, char8_t> || std::is_same_v<T, char16_t> ||
                                                        std::is_same_v<T, char32_t>;
/// A range of characters, which std::in_range does not take for integers.
template <class T> concept CharacterRange = requires(const T& range) { std::ranges::end(range); }
&&is_character<typename ArrayLength<RangeValue<T>>::number>;
/// A range of numbers or of std::array of numbers; or a tensor or view on the host.
template <class T> concept NumberRange = requires(const T& range) { std::ranges::end(range); }
&&std::is_arithmetic_v<typename ArrayLength<RangeValue<T>>::number>;
template <class T> concept SizedRange = requires(const T& range) { std::ranges::size(range); };
template <class T> inline constexpr int tensor_rank = 0;
template <class Scalar, int Rank> inline constexpr int tensor_rank<TensorView<Scalar, Rank, Cpu>> = Rank;
template <class Scalar, int Rank> inline constexpr int tensor_rank<Tensor<Scalar, Rank, Cpu>> = Rank;
template <class T> concept HostTensor = tensor_rank<T> >
0 && tensor_rank<T> <= 5;
template <class T> concept Numbers = HostTensor<T> ||
    (NumberRange<T> && !CharacterRange<T> && !requires { typename T::skein_expression; });

template <class T> struct NumberIn { using type = typename ArrayLength<RangeValue<T>>::number; };
template <HostTensor T> struct NumberIn<T> { using type = typename T::Scalar; };
template <class T> using NumberOf = typename NumberIn<T>::type;

/// Throws ArgumentError for an integer that a data set cannot keep.
template <class To, class From> To converted(From number) {
  if constexpr (std::is_same_v<To, std::int32_t> && std::is_integral_v<From> && !std::is_same_v<From, bool>)
    if (!std::in_range<std::int32_t>(number))
      throw ArgumentError(text("from_tensors: the integer {} does not fit 32 bits, as labels and tokens do", number));
  return static_cast<To>(number);
}

template <class To, class S, int Rank> void flatten_view(const TensorView<S, Rank, Cpu>& view, std::vector<To>& flat) {
  for (long i = 0; i < view.extent(0); ++i) {
    if constexpr (Rank == 1) flat.push_back(converted<To>(view.data[i * view.strides[0]]));
    else flatten_view<To>(view[i], flat);
  }
}
template <class To, class T> std::vector<To> flatten(const T& numbers) {
  std::vector<To> flat;
  if constexpr (HostTensor<T>) {
    flat.reserve(static_cast<std::size_t>(numbers.size()));
    if constexpr (requires { numbers.view(); }) flatten_view<To>(numbers.view(), flat);
    else flatten_view<To>(numbers, flat);
  } else {
    constexpr int each = ArrayLength<RangeValue<T>>::value;
    if constexpr (SizedRange<T>)
      flat.reserve(static_cast<std::size_t>(std::ranges::size(numbers)) * static_cast<std::size_t>(each > 0 ? each : 1));
    for (const auto& item : numbers) {
      if constexpr (each > 0)
        for (const auto& number : item) flat.push_back(converted<To>(number));
      else flat.push_back(converted<To>(item));
    }
  }
  return flat;
}
/// The extents of one sample: all of a tensor's but the first; the length of a std::array; one for numbers.
template <class T> Extents sample_of(const T& numbers) {
  if constexpr (HostTensor<T>) {
    Extents sample;
    for (int i = 1; i < tensor_rank<T>; ++i) sample.e[sample.rank++] = static_cast<int>(numbers.extent(i));
    if (sample.rank == 0) sample = {1, {1}};
    return sample;
  } else {
    constexpr int each = ArrayLength<RangeValue<T>>::value;
    return {1, {each > 0 ? each : 1}};
  }
}

template <class X> using StoredFor =
    std::conditional_t<std::is_same_v<NumberOf<X>, double>, double,
                       std::conditional_t<std::is_same_v<NumberOf<X>, std::uint8_t>, std::uint8_t,
                                          std::conditional_t<std::is_integral_v<NumberOf<X>>, std::int32_t, float>>>;

template <class X> inline constexpr bool takes = Numbers<X>;  // a value, so that no compiler explains the concept at length
template <class X> inline constexpr bool is_of_characters = CharacterRange<X>;
template <class X> consteval void assert_numbers() {
  static_assert(!is_of_characters<X>,
                "char is no number: take std::vector<std::uint8_t>, whose samples are served as byte / 255, or std::int8_t");
  static_assert(takes<X> || is_of_characters<X>,
                "data::from_tensors takes ranges of numbers or of std::array of numbers, such as std::vector<float>, and tensors "
                "on the host");
}

/// The items that a program has put targets into: what a tensor of several extents has along the first, or std::arrays of
/// several numbers; -1 of a plain list, which says nothing of it.
template <class T> std::int64_t items_of(const T& numbers, std::size_t values) {
  if constexpr (HostTensor<T>) return tensor_rank<T> > 1 ? numbers.extent(0) : -1;
  else return sample_of(numbers).count() > 1 ? static_cast<std::int64_t>(values) / sample_of(numbers).count() : -1;
}
/// Throws ShapeError where targets that come in so many items (-1: in none) are not one for each sample.
void check_items(std::int64_t items, std::size_t values, long each);

/// Labels a sample of a plain list of them: one, or where there are more labels than samples as many as divide evenly.
int labels_each(std::size_t labels, std::size_t values, long each);
/// Target values a sample. Throws ShapeError where they cannot be divided among the samples, of `each` values.
int target_length(std::size_t values, std::size_t samples, long each);
}  // namespace detail

/// Samples of the given extents, dense one after another in x, with targets y: integers are class numbers (one a sample; of a
/// tensor (samples, T) or (samples, h, w), of items std::array<int, T>, or of a plain list that is a multiple as long, as many a
/// sample as there are: a label image), other numbers are target vectors (as many values a sample as there are). Throws
/// ShapeError where counts do not fit, ArgumentError where a value is infinite or not a number: with NonFinite::keep they are
/// served as they are.
template <class X, class Y>
requires(!std::is_same_v<Y, NonFinite>) auto from_tensors(const X& x, Extents sample, const Y& y,
                                                          NonFinite non_finite = NonFinite::refuse) {
  detail::assert_numbers<X>();
  detail::assert_numbers<Y>();
  if constexpr (detail::Numbers<X> && detail::Numbers<Y>) {
    detail::check_sample(sample);
    using Stored = detail::StoredFor<X>;
    auto samples = detail::flatten<Stored>(x);
    if constexpr (std::is_integral_v<detail::NumberOf<Y>>) {
      auto labels = detail::flatten<std::int32_t>(y);
      detail::check_items(detail::items_of(y, labels.size()), samples.size(), sample.count());
      const int items = static_cast<int>(detail::sample_of(y).count());
      const int each = items > 1 ? items : detail::labels_each(labels.size(), samples.size(), sample.count());
      return InMemory<Stored>(sample, std::move(samples), std::move(labels), 0, each, non_finite);
    } else {
      auto targets = detail::flatten<typename InMemory<Stored>::Real>(y);
      detail::check_items(detail::items_of(y, targets.size()), samples.size(), sample.count());
      const int length = detail::target_length(targets.size(), samples.size(), sample.count());
      return InMemory<Stored>(sample, std::move(samples), std::move(targets), length, non_finite);
    }
  }
}

/// One sample for each item of x, which is a number (a function of one variable) or a std::array of numbers (of several); or for
/// each x(i) of a tensor. y as above; it may be a tensor too.
template <class X, class Y>
requires(!std::is_same_v<Y, Extents>) auto from_tensors(const X& x, const Y& y, NonFinite non_finite = NonFinite::refuse) {
  detail::assert_numbers<X>();
  if constexpr (detail::Numbers<X>) return from_tensors(x, detail::sample_of(x), y, non_finite);
}

/// Samples without targets, for predictions.
template <class X> auto from_tensors(const X& x, Extents sample, NonFinite non_finite = NonFinite::refuse) {
  detail::assert_numbers<X>();
  if constexpr (detail::Numbers<X>) {
    using Stored = detail::StoredFor<X>;
    return InMemory<Stored>(sample, detail::flatten<Stored>(x), non_finite);
  }
}

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "from_tensors.ipp"
#endif
