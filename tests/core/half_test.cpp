// SPDX-License-Identifier: Apache-2.0
#include <skein/core/half.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

namespace {
constexpr int values = 65536;
template <class Half> constexpr int mantissa_bits = std::numeric_limits<Half>::digits - 1;
template <class Half> constexpr int exponent_bits = 15 - mantissa_bits<Half>;
template <class Half> constexpr int infinity_bits = ((1 << exponent_bits<Half>)-1) << mantissa_bits<Half>;

/// What the bits say, out of the definition of the format and in double: the slow, exact model.
template <class Half> double meaning(int bits) {
  const int m = mantissa_bits<Half>, bias = (1 << (exponent_bits<Half> - 1)) - 1;
  const int exponent = (bits & 0x7fff) >> m, fraction = bits & ((1 << m) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits<Half>)-1) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - m);
  return sign * std::ldexp((1 << m) + fraction, exponent - bias - m);
}

/// The bits of the nearest value, ties to the even one, by search among all of them: the largest finite number and infinity
/// are half a step apart from the number that would follow.
template <class Half> int nearest(double value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double a = std::fabs(value);
  int low = 0, high = infinity_bits<Half>;  // low <= a < high
  const double end = 2 * meaning<Half>(high - 1) - meaning<Half>(high - 2);
  auto at = [&](int bits) { return bits == infinity_bits<Half> ? end : meaning<Half>(bits); };
  if (a >= end) return sign | high;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (at(middle) <= a ? low : high) = middle;
  }
  const double below = a - at(low), above = at(high) - a;
  return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

template <class From> auto bits_of(From value) {
  std::conditional_t<sizeof(From) == 2, std::uint16_t, std::uint32_t> u;
  std::memcpy(&u, &value, sizeof u);
  return u;
}
float float_of(std::uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
}  // namespace

TEMPLATE_TEST_CASE("every 16-bit value is what the format says and comes back from float and double", "", sk::bf16, sk::fp16) {
  int wrong = 0, nans = 0;
  for (int b = 0; b < values; ++b) {
    const TestType h = TestType::from_bits(static_cast<std::uint16_t>(b));
    const float f = h;
    const double right = meaning<TestType>(b);
    if (std::isnan(right)) {
      const int quiet = b | 1 << (mantissa_bits<TestType> - 1);  // a signalling NaN becomes a quiet one
      wrong += !std::isnan(f) || TestType(f).bits != quiet || !std::isnan(static_cast<float>(TestType(static_cast<double>(f))));
      ++nans;
    } else {
      wrong += static_cast<double>(f) != right || std::signbit(f) != std::signbit(right) || TestType(f).bits != b ||
               TestType(static_cast<double>(f)).bits != b;
    }
  }
  CHECK(wrong == 0);
  CHECK(nans == 2 * ((1 << mantissa_bits<TestType>)-1));
}

TEMPLATE_TEST_CASE("floats around every value and every midpoint round to the nearest, ties to even", "", sk::bf16, sk::fp16) {
  int wrong = 0;
  for (int b = 0; b < infinity_bits<TestType>; ++b) {
    const double here = meaning<TestType>(b);
    const double next = b + 1 < infinity_bits<TestType> ? meaning<TestType>(b + 1) : 2 * here - meaning<TestType>(b - 1);
    for (const double point : {here, (here + next) / 2}) {
      const float f = static_cast<float>(point);  // exact: bf16's smallest midpoints are floats too
      for (const float g : {std::nextafter(f, -INFINITY), f, std::nextafter(f, INFINITY)})
        for (const float signed_value : {g, -g}) {
          if (std::isinf(g)) continue;
          wrong += TestType(signed_value).bits != nearest<TestType>(static_cast<double>(signed_value));
        }
      for (const double g : {std::nextafter(point, -INFINITY), std::nextafter(point, INFINITY)})  // a double between two floats
        wrong += TestType(g).bits != nearest<TestType>(g);
    }
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("a walk over all floats agrees with the model", "", sk::bf16, sk::fp16) {
  int wrong = 0, looked = 0;
  for (std::uint64_t u = 0; u <= 0xffffffffu; u += 9973) {
    const float f = float_of(static_cast<std::uint32_t>(u));
    if (std::isnan(f)) {
      wrong += !std::isnan(static_cast<float>(TestType(f)));
      continue;
    }
    ++looked;
    wrong += TestType(f).bits != nearest<TestType>(static_cast<double>(f));
  }
  CHECK(wrong == 0);
  CHECK(looked > 400000);
}

TEMPLATE_TEST_CASE("NaN, infinity and overflow", "", sk::bf16, sk::fp16) {
  using L = std::numeric_limits<TestType>;
  CHECK(std::isinf(static_cast<float>(L::infinity())));
  CHECK(TestType(INFINITY).bits == L::infinity().bits);
  CHECK(TestType(-INFINITY).bits == (L::infinity().bits | 0x8000));
  CHECK(std::isnan(static_cast<float>(L::quiet_NaN())));
  CHECK(std::signbit(static_cast<float>(TestType(float_of(0xffc00000u)))));
  CHECK(TestType(float_of(0x7f800001u)).bits == L::quiet_NaN().bits);  // a payload that is only low bits is not lost
  CHECK(std::isinf(static_cast<float>(TestType(1e300))));
  CHECK(TestType(-0.0f).bits == 0x8000);
  CHECK(TestType(1e-300).bits == 0);
  CHECK(static_cast<float>(L::epsilon()) == std::ldexp(1.0f, 1 - L::digits));
  CHECK(static_cast<float>(TestType(1.0f + static_cast<float>(L::epsilon()))) > 1.0f);
  CHECK(static_cast<float>(L::max()) == std::ldexp(2.0f - std::ldexp(1.0f, 1 - L::digits), L::max_exponent - 1));
  CHECK(static_cast<float>(L::min()) == std::ldexp(1.0f, L::min_exponent - 1));
  CHECK(static_cast<float>(L::lowest()) == -static_cast<float>(L::max()));
  CHECK(static_cast<float>(L::denorm_min()) == std::ldexp(1.0f, L::min_exponent - L::digits));
}

TEST_CASE("conversions are constant expressions, out of any number") {
  static_assert(sk::bf16(1.0f).bits == 0x3f80 && sk::fp16(1.0f).bits == 0x3c00);
  static_assert(sk::bf16(-2).bits == 0xc000 && sk::fp16(3L).bits == 0x4200);
  static_assert(static_cast<float>(sk::fp16(65519.0f)) == 65504.0f && sk::fp16(65520.0f).bits == 0x7c00);
  static_assert(sk::fp16(0x1p-25f).bits == 0 && sk::fp16(0x1.000002p-25f).bits == 1 && sk::fp16(0x1.8p-24f).bits == 2);
  // 1 + 2^-8 is the midpoint of two bf16; a double just above it, which rounds to that float, must not be taken for a tie.
  static_assert(sk::bf16(1.00390625).bits == 0x3f80 && sk::bf16(1.00390625 + 0x1p-40).bits == 0x3f81);
  static_assert(sk::bf16(2.0f) * sk::bf16(0.5f) == 1.0f);  // arithmetic is float's
  static_assert(std::is_same_v<decltype(sk::bf16(2.0f) * sk::fp16(0.5f)), float>);
  static_assert(!std::is_convertible_v<float, sk::bf16> && !std::is_convertible_v<float, sk::fp16>);  // rounding is said
  static_assert(sk::is_half<sk::bf16> && sk::is_half<sk::fp16> && !sk::is_half<float>);
  SUCCEED();
}

#if defined(__FLT16_MAX__) && !defined(__clang__)
TEST_CASE("fp16 is the compiler's _Float16") {
  int wrong = 0;
  for (int b = 0; b < values; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    _Float16 theirs;
    std::memcpy(&theirs, &bits, 2);
    const float f = sk::fp16::from_bits(bits), g = static_cast<float>(theirs);
    wrong += std::isnan(f) ? !std::isnan(g) : bits_of(f) != bits_of(g);
  }
  for (std::uint64_t u = 0; u <= 0xffffffffu; u += 1009) {
    const float f = float_of(static_cast<std::uint32_t>(u));
    const _Float16 theirs = static_cast<_Float16>(f);
    if (std::isnan(f)) continue;
    wrong += sk::fp16(f).bits != bits_of(theirs);
    const double d = static_cast<double>(f) * (1 + 0x1p-30);
    wrong += !std::isinf(d) && sk::fp16(d).bits != bits_of(static_cast<_Float16>(d));
  }
  CHECK(wrong == 0);
}
#endif
