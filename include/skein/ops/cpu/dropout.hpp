// SPDX-License-Identifier: Apache-2.0
// Dropout with sixteen Philox blocks at a time, in loops that compilers turn into vectors; the same masks as the reference.
#pragma once
#include "../reference/dropout.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
inline constexpr long philox_blocks = 16;

/// Words of blocks [first, first + 16) of a stream: word w of block b at words[4 b + w].
inline void philox_words(std::uint64_t key, std::uint64_t stream, std::uint64_t first, std::uint32_t* words) {
  constexpr long n = philox_blocks;
  alignas(64) std::uint32_t c0[n], c1[n], c2[n], c3[n];
  for (long b = 0; b < n; ++b) {
    const std::uint64_t low = first + static_cast<std::uint64_t>(b);
    c0[b] = static_cast<std::uint32_t>(low);
    c1[b] = static_cast<std::uint32_t>(low >> 32);
    c2[b] = static_cast<std::uint32_t>(stream);
    c3[b] = static_cast<std::uint32_t>(stream >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (long b = 0; b < n; ++b) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[b], p1 = std::uint64_t{0xCD9E8D57u} * c2[b];
      const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1[b] ^ k0, n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<std::uint32_t>(p1);
      c3[b] = static_cast<std::uint32_t>(p0);
      c0[b] = n0;
      c2[b] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (long b = 0; b < n; ++b) {
    words[4 * b] = c0[b];
    words[4 * b + 1] = c1[b];
    words[4 * b + 2] = c2[b];
    words[4 * b + 3] = c3[b];
  }
}
}  // namespace detail

template <class Scalar> void dropout(const DropoutShape& s, double rate, const Scalar* x, Scalar* y) {
  const std::uint64_t threshold = dropout_threshold(rate);
  if (threshold == 0 || threshold > 0xffffffffull) {              // all or none: no numbers are needed
    for (long r = 0; r < s.rows; ++r)
      for (long e = 0; e < s.pitch; ++e) y[r * s.pitch + e] = threshold == 0 && e < s.n ? x[r * s.pitch + e] : Scalar(0);
    return;
  }
  const std::uint32_t limit = static_cast<std::uint32_t>(threshold);
  const Scalar scale = static_cast<Scalar>(1 / (1 - rate));
  constexpr long step = 4 * detail::philox_blocks;
  alignas(64) std::uint32_t words[step];
  for (long r = 0; r < s.rows; ++r) {
    const Scalar* in = x + r * s.pitch;
    Scalar* out = y + r * s.pitch;
    for (long e = 0; e < s.n; e += step) {
      detail::philox_words(s.key, s.first + static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(e / 4), words);
      if (s.n - e >= step) {
        for (long i = 0; i < step; ++i) out[e + i] = words[i] >= limit ? in[e + i] * scale : Scalar(0);
      } else {
        for (long i = 0; i < s.n - e; ++i) out[e + i] = words[i] >= limit ? in[e + i] * scale : Scalar(0);
      }
    }
    for (long e = s.n; e < s.pitch; ++e) out[e] = 0;
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
