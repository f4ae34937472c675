// SPDX-License-Identifier: Apache-2.0
// Eight bytes as one word, and which of them have a value.
#pragma once
#include <cstdint>
#include <cstring>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// The first n <= 8 bytes at `from` as a word (little-endian), bytes of ones behind them.
SKEIN_ALWAYS_INLINE std::uint64_t word_of_bytes(const unsigned char* from, int n) {
  std::uint64_t bytes = ~std::uint64_t(0);
  std::memcpy(&bytes, from, static_cast<std::size_t>(n));
  return bytes;
}
/// The high bit of each byte of `bytes` that equals `value`.
SKEIN_ALWAYS_INLINE std::uint64_t equal_bytes(std::uint64_t bytes, int value) {
  constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7fu;
  const std::uint64_t x = bytes ^ (0x0101010101010101u * static_cast<std::uint64_t>(value));
  return ~(((x & low) + low) | x | low);
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
