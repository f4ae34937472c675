// SPDX-License-Identifier: Apache-2.0
// Values as 8-bit integers with one scale a block: a quarter of the bytes. Not linear: ranks have different scales.
// After Dettmers, 8-bit approximations for parallelism in deep learning, ICLR 2016 (here with even steps).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Blocks of Block values: a float (the largest magnitude / 127), then the rounded multiples of it. n + 4 ceil(n / Block) bytes.
/// The error of a value is at most half a scale. A block with a NaN or an infinity comes back as NaN, so that an overflow is
/// seen.
template <int Block = 256> struct Int8Wire {
  static_assert(Block >= 1, "Int8Wire<Block>: a block has a value at least");
  static constexpr std::string_view name = "int8";
  static constexpr bool linear = false;
  static constexpr int rounds = 1;
  using Element = std::uint8_t;

  constexpr std::size_t elements(std::size_t n, int = 0) const { return n + sizeof(float) * ((n + Block - 1) / Block); }
  void encode(std::span<const float> values, std::span<Element> wire, int = 0) const {
    Element* out = wire.data();
    for (std::size_t at = 0; at < values.size(); at += Block) {
      const std::span<const float> block = values.subspan(at, count(values.size(), at));
      float largest = 0;
      bool finite = true;
      for (const float x : block) {
        largest = std::abs(x) > largest ? std::abs(x) : largest;
        finite = finite && std::isfinite(x);
      }
      const float scale = finite ? largest / 127 : NAN;
      const float inverse = finite && scale > 0 ? 127 / largest : 0;
      std::memcpy(out, &scale, sizeof scale);
      out += sizeof scale;
      for (const float x : block) *out++ = static_cast<Element>(finite ? whole(x * inverse) : 0);
    }
  }
  void decode(std::span<const Element> wire, std::span<float> values) const {
    const Element* in = wire.data();
    for (std::size_t at = 0; at < values.size(); at += Block) {
      float scale;
      std::memcpy(&scale, in, sizeof scale);
      in += sizeof scale;
      for (float& x : values.subspan(at, count(values.size(), at)))
        x = scale * static_cast<float>(static_cast<std::int8_t>(*in++));
    }
  }

 private:
  static std::size_t count(std::size_t n, std::size_t at) { return n - at < Block ? n - at : Block; }
  /// The nearest integer of -127 to 127; a block of the smallest numbers, whose inverse is infinite, is zero times its scale.
  static std::int8_t whole(float multiple) {
    return multiple >= 127        ? std::int8_t{127}
           : multiple <= -127     ? std::int8_t{-127}
           : multiple == multiple ? static_cast<std::int8_t>(std::lrint(multiple))
                                  : std::int8_t{0};
  }
};

}  // namespace skein::inline SKEIN_ABI::comm
