// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv): a small hash that can be computed while compiling. Ranks compare by
// it what they must have in common. It finds accidents, not forgery; what is in files is hashed by train/hash.hpp, which is
// faster.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shape.hpp"

namespace skein::inline SKEIN_ABI {

/// Takes values one after the other; the same values in the same order give the same hash on every machine and compiler.
class Fnv1a {
 public:
  /// The byte itself: the step of which all others are made.
  constexpr Fnv1a& byte(unsigned char b) {
    value_ = (value_ ^ b) * 0x100000001b3ull;
    return *this;
  }
  /// Eight bytes, the lowest first.
  constexpr Fnv1a& add(std::uint64_t v) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(v >> (8 * i)));
    return *this;
  }
  /// The characters, then their number, so that "ab", "c" is not "a", "bc".
  constexpr Fnv1a& add(std::string_view s) {
    for (char c : s) byte(static_cast<unsigned char>(c));
    return add(s.size());
  }
  /// Rank and lengths.
  constexpr Fnv1a& add(const Extents& e) {
    add(static_cast<std::uint64_t>(e.rank));
    for (int i = 0; i < e.rank; ++i) add(static_cast<std::uint64_t>(e[i]));
    return *this;
  }
  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

/// The hash of n bytes. It depends on how the machine lays out what they mean.
inline std::uint64_t hash_bytes(const void* data, std::size_t n) {
  Fnv1a hash;
  for (std::size_t i = 0; i < n; ++i) hash.byte(static_cast<const unsigned char*>(data)[i]);
  return hash.value();
}

}  // namespace skein::inline SKEIN_ABI
