// SPDX-License-Identifier: Apache-2.0
// Values as 8-bit integers with one scale a block: a quarter of the bytes. Not linear: ranks have different scales.
// After Dettmers, 8-bit approximations for parallelism in deep learning, ICLR 2016 (here with even steps).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Blocks of Block values: a float (the largest magnitude / 127), then the rounded multiples of it. n + 4 ceil(n / Block) bytes.
/// The error of a value is at most half a scale; a block without a magnitude of 4e-37 or more becomes zero. A block with a NaN or
/// an infinity comes back as NaN, so that an overflow is seen.
template <int Block = 256> struct Int8Codec {
  static_assert(Block >= 1, "Int8Codec<Block>: a block has a value at least");
  static constexpr std::string_view name = "int8";
  static constexpr bool linear = false;
  static constexpr int rounds = 1;
  using Element = std::uint8_t;

  constexpr std::size_t elements(std::size_t n, int = 0) const { return n + sizeof(float) * ((n + Block - 1) / Block); }
  void encode(std::span<const float> values, std::span<Element> wire, int = 0) const {
    Element* out = wire.data();
    for (std::size_t at = 0; at < values.size(); at += Block) {
      const std::size_t n = count(values.size(), at);
      float block[Block] = {};
      std::memcpy(block, values.data() + at, n * sizeof(float));
      std::uint32_t largest_bits = 0;  // magnitudes have the order of their bits; what is not finite comes last
      for (int i = 0; i < Block; ++i) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(block[i]) & 0x7fffffffu;
        largest_bits = bits > largest_bits ? bits : largest_bits;
      }
      const float largest = std::bit_cast<float>(largest_bits);
      const bool finite = largest_bits < 0x7f800000u;
      const float rounded_scale = largest / 127;  // of the largest floats 127 of it may be infinite: then the float before
      const float finite_scale =
          rounded_scale * 127 < INFINITY ? rounded_scale : std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded_scale) - 1);
      const float scale = finite ? finite_scale : NAN, inverse = finite && 127 / largest < INFINITY ? 127 / largest : 0;
      std::memcpy(out, &scale, sizeof scale);
      out += sizeof scale;
      Element whole[Block];
      for (int i = 0; i < Block; ++i) whole[i] = finite ? rounded(block[i] * inverse) : Element{0};
      std::memcpy(out, whole, n);
      out += n;
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
  /// The nearest integer of -127 to 127, as a byte: adding and taking 1.5 * 2^23 leaves no fraction.
  static Element rounded(float multiple) {
    const float low = multiple < -127 ? -127 : multiple, within = low > 127 ? 127 : low;
    return static_cast<Element>(static_cast<std::int32_t>((within + 12582912.0f) - 12582912.0f));
  }
};

}  // namespace skein::inline SKEIN_ABI::comm
