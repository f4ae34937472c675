// SPDX-License-Identifier: Apache-2.0
// The bodies of finite.hpp.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "finite.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

template <std::floating_point Scalar> struct Bits {
  using Word = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Word magnitude = ~Word{0} >> 1;  // all but the sign
  static constexpr Word infinity = sizeof(Scalar) == 4 ? Word{0xff} << 23 : static_cast<Word>(std::uint64_t{0x7ff} << 52);
  static Word of(Scalar value) { return std::bit_cast<Word>(value) & magnitude; }
};

/// Magnitudes are in the order of their bits, and what is no number is above infinity. Lanes of a fixed number: a compiler makes
/// vectors of them at -O2 too.
template <class Scalar> Scalar greatest_magnitude_of(std::span<const Scalar> values) {
  using Word = typename Bits<Scalar>::Word;
  constexpr std::size_t lanes = 128 / sizeof(Scalar);
  Word most[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) {
      const Word word = Bits<Scalar>::of(values[i + k]);
      most[k] = word > most[k] ? word : most[k];
    }
  for (std::size_t k = 0; i + k < values.size(); ++k) {
    const Word word = Bits<Scalar>::of(values[i + k]);
    most[k] = word > most[k] ? word : most[k];
  }
  for (std::size_t k = 1; k < lanes; ++k) most[0] = most[k] > most[0] ? most[k] : most[0];
  return std::bit_cast<Scalar>(most[0]);
}
template <class Scalar> long first_not_finite_of(std::span<const Scalar> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (Bits<Scalar>::of(values[i]) >= Bits<Scalar>::infinity) return static_cast<long>(i);
  return -1;
}

SKEIN_INLINE float greatest_magnitude(std::span<const float> values) { return greatest_magnitude_of(values); }
SKEIN_INLINE double greatest_magnitude(std::span<const double> values) { return greatest_magnitude_of(values); }
SKEIN_INLINE bool finite(double value) { return Bits<double>::of(value) < Bits<double>::infinity; }
SKEIN_INLINE long first_not_finite(std::span<const float> values) { return first_not_finite_of(values); }
SKEIN_INLINE long first_not_finite(std::span<const double> values) { return first_not_finite_of(values); }
SKEIN_INLINE std::string not_finite_text(double value) {
  if (Bits<double>::of(value) > Bits<double>::infinity) return "nan";
  return std::bit_cast<std::uint64_t>(value) >> 63 ? "-inf" : "inf";
}

}  // namespace skein::inline SKEIN_ABI::data::detail
