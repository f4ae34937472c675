// SPDX-License-Identifier: Apache-2.0
// Values as 16-bit floats on the wire: half the bytes, and linear. An all-reduce adds in float and rounds after each addition, so
// the error of a sum grows with the ranks; scale gradients for fp16, whose largest value is 65504.
#pragma once
#include <cstring>

#include "../../core/half.hpp"
#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// 2 n bytes. Relative error of a value at most 2^-8 (bf16), or 2^-11 from 2^-14 on (fp16). HalfCodec<float> is no compression.
template <class Half> struct HalfCodec {
  static constexpr std::string_view name = std::same_as<Half, bf16> ? "bf16" : std::same_as<Half, fp16> ? "fp16" : "fp32";
  static constexpr bool linear = true;
  static constexpr int rounds = 1;
  using Element = Half;

  constexpr std::size_t elements(std::size_t n, int = 0) const { return n; }
  void encode(std::span<const float> values, std::span<Half> wire, int = 0) const {
    convert(values.data(), wire.data(), values.size());
  }
  void decode(std::span<const Half> wire, std::span<float> values) const { convert(wire.data(), values.data(), values.size()); }

 private:
  /// Blockwise through a local array, which compilers turn into vectors.
  template <class From, class To> static void convert(const From* from, To* to, std::size_t n) {
    constexpr std::size_t block = 64;
    std::size_t i = 0;
    for (; i + block <= n; i += block) {
      To values[block];
      for (std::size_t j = 0; j < block; ++j) values[j] = static_cast<To>(from[i + j]);
      std::memcpy(static_cast<void*>(to + i), values, sizeof values);
    }
    for (; i < n; ++i) to[i] = static_cast<To>(from[i]);
  }
};

}  // namespace skein::inline SKEIN_ABI::comm
