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
  for (long b = 0; b < n; ++b) {  // one vector lane a block: the rounds are inside, so that nothing is stored between
    const Philox p = Philox::at(key, stream, first + static_cast<std::uint64_t>(b));
    c0[b] = p.word[0];
    c1[b] = p.word[1];
    c2[b] = p.word[2];
    c3[b] = p.word[3];
  }
  for (long b = 0; b < n; ++b) {
    words[4 * b] = c0[b];
    words[4 * b + 1] = c1[b];
    words[4 * b + 2] = c2[b];
    words[4 * b + 3] = c3[b];
  }
}
}  // namespace detail

/// Does what reference::dropout does, in vectors; the same bits.
template <class Scalar> void dropout(const DropoutShape& s, double rate, const Scalar* x, Scalar* y) {
  const std::uint64_t threshold = dropout_threshold(rate);
  if (threshold == 0 || threshold > 0xffffffffull) {  // all or none: no numbers are needed
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
