// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). A value is a pure function of (key, counter): it does not depend on threads, ranks or the order of calls.
#pragma once
#include <cmath>
#include <cstdint>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// The seed of a model, a loader or a fill.
struct Seed {
  std::uint64_t value = 0;
};

/// Four 32-bit words out of a 64-bit key and a 128-bit counter.
struct Philox {
  std::uint32_t word[4];

  static constexpr Philox at(std::uint64_t key, std::uint64_t high, std::uint64_t low) {
    std::uint32_t c0 = static_cast<std::uint32_t>(low), c1 = static_cast<std::uint32_t>(low >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(high), c3 = static_cast<std::uint32_t>(high >> 32);
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
      const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0,
                          n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(p1);
      c3 = static_cast<std::uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }
};

/// A key for one purpose (a layer, an epoch, a fill) out of a seed: purposes do not share numbers.
constexpr std::uint64_t random_key(std::uint64_t seed, std::uint64_t purpose) {
  const Philox p = Philox::at(seed, 0x736b65696eull, purpose);  // "skein"
  return static_cast<std::uint64_t>(p.word[0]) << 32 | p.word[1];
}

/// Uniform in [0, 1), 24 bits, from one word.
constexpr float uniform_from(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// The i-th word of the stream (key, stream): four neighbours share one block.
constexpr std::uint32_t random_word(std::uint64_t key, std::uint64_t stream, std::uint64_t i) {
  return Philox::at(key, stream, i / 4).word[i % 4];
}

/// The i-th uniform of the stream, in [0, 1).
constexpr float random_uniform(std::uint64_t key, std::uint64_t stream, std::uint64_t i) {
  return uniform_from(random_word(key, stream, i));
}

/// The i-th standard normal of the stream (Box and Muller, in double, so that all compilers and devices agree to the last bits;
/// a GPU's log and cos may differ by an ulp of double, which shows in one float of some hundred million).
SKEIN_HOST_DEVICE inline float random_normal(std::uint64_t key, std::uint64_t stream, std::uint64_t i) {
  const Philox p = Philox::at(key, stream, i / 2);
  const int half = static_cast<int>(i % 2) * 2;
  const double u = (static_cast<double>(p.word[half]) + 0.5) * 0x1p-32, v = static_cast<double>(p.word[half + 1]) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
}

/// An integer in [0, n) without bias worth speaking of (n < 2^32; multiply-shift on 64 bits of randomness).
constexpr std::uint64_t random_below(std::uint64_t key, std::uint64_t stream, std::uint64_t i, std::uint64_t n) {
  const Philox p = Philox::at(key, stream, i);
  const std::uint64_t r = static_cast<std::uint64_t>(p.word[0]) << 32 | p.word[1];
  return ((r >> 32) * n + (((r & 0xffffffffull) * n) >> 32)) >> 32;
}

}  // namespace skein::inline SKEIN_ABI
