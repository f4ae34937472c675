// SPDX-License-Identifier: Apache-2.0
// The two 16-bit floating-point types, for storage: bf16 (bfloat16: the upper half of a float) and fp16 (IEEE 754 binary16).
// They hold values and convert to and from float, rounding to nearest, ties to even; arithmetic is float's. Every conversion
// is constexpr and without branches, so that kernels may call it and compilers make vectors of it. Both have the layout of
// CUDA's own types (__nv_bfloat16, __half): pointers are cast where a library is called.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
/// The upper half of a float, rounded. A NaN stays one: quiet, with its sign and the upper bits of its payload.
constexpr std::uint16_t bf16_bits(float value) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16, nan = u >> 16 | 0x40u;
  return static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}
constexpr float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// Rebiased exponent, rounded mantissa. Below 2^-14 the sum with 1/2 does the rounding: its unit is fp16's smallest number.
constexpr std::uint16_t fp16_bits(float value) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  const std::uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (a < 0x38800000u ? small : a >= 0x47800000u ? special : normal));
}
constexpr float fp16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, a = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const float small = std::bit_cast<float>(a + 0x38800000u) - 0x1p-14f;  // a <= 0x7fe000 where it counts
  const std::uint32_t large = a + (a >= 0x0f800000u ? 0x70000000u : 0x38000000u);
  return std::bit_cast<float>(sign | (a < 0x00800000u ? std::bit_cast<std::uint32_t>(small) : large));
}

/// A float that rounds to a 16-bit type as the double itself would: towards zero, with the last bit set where that was inexact.
constexpr float rounded_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || !(value == value)) return nearest;
  std::uint32_t u = std::bit_cast<std::uint32_t>(nearest);
  if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) --u;
  return std::bit_cast<float>(u | 1u);
}

// What kernels call: one instruction where a GPU has it, else the integers above. They differ in the payloads of NaNs alone.

constexpr std::uint16_t to_bf16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (!std::is_constant_evaluated()) {
    std::uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
#endif
  return bf16_bits(value);
}
constexpr std::uint16_t to_fp16(float value) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
#endif
  return fp16_bits(value);
}
constexpr float from_fp16(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#endif
  return fp16_value(bits);
}

template <class T> constexpr float for_half(T value) {
  if constexpr (std::is_same_v<T, float>) return value;
  else return rounded_to_odd(static_cast<double>(value));
}
}  // namespace detail

/// bfloat16: float's range, 8 bits of precision. Two bytes; construction rounds, reading is exact.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr explicit bf16(T value) : bits(detail::to_bf16(detail::for_half(value))) {}
  static constexpr bf16 from_bits(std::uint16_t b) {
    bf16 h{};
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return detail::bf16_value(bits); }
};

/// IEEE binary16: 11 bits of precision, from 2^-24 to 65504. Two bytes; construction rounds, reading is exact.
struct fp16 {
  std::uint16_t bits;

  fp16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr explicit fp16(T value) : bits(detail::to_fp16(detail::for_half(value))) {}
  static constexpr fp16 from_bits(std::uint16_t b) {
    fp16 h{};
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return detail::from_fp16(bits); }
};

static_assert(sizeof(bf16) == 2 && sizeof(fp16) == 2 && std::is_trivially_copyable_v<bf16> && std::is_trivially_copyable_v<fp16>);

/// One of the two 16-bit storage types.
template <class T> inline constexpr bool is_half = std::is_same_v<T, bf16> || std::is_same_v<T, fp16>;

namespace detail {
template <class Half, int Digits, int MinExponent, int MaxExponent, int Max, int Min, int Infinity, int Quiet, int Epsilon>
struct HalfLimits {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, is_iec559 = true,
                        has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = false, is_bounded = true,
                        is_modulo = false, traps = false, tinyness_before = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2, digits = Digits, min_exponent = MinExponent, max_exponent = MaxExponent;
  static constexpr Half max() { return Half::from_bits(Max); }
  static constexpr Half lowest() { return Half::from_bits(Max | 0x8000); }
  static constexpr Half min() { return Half::from_bits(Min); }
  static constexpr Half denorm_min() { return Half::from_bits(1); }
  static constexpr Half infinity() { return Half::from_bits(Infinity); }
  static constexpr Half quiet_NaN() { return Half::from_bits(Quiet); }
  static constexpr Half epsilon() { return Half::from_bits(Epsilon); }
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI

template <> struct std::numeric_limits<skein::bf16>
    : skein::detail::HalfLimits<skein::bf16, 8, -125, 128, 0x7f7f, 0x0080, 0x7f80, 0x7fc0, 0x3c00> {};
template <> struct std::numeric_limits<skein::fp16>
    : skein::detail::HalfLimits<skein::fp16, 11, -13, 16, 0x7bff, 0x0400, 0x7c00, 0x7e00, 0x1400> {};
