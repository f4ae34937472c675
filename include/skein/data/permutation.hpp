// SPDX-License-Identifier: Apache-2.0
// The order of an epoch: a permutation of [0, size) keyed by (seed, epoch), computed point by point in constant memory, so
// that any rank can start at any position and all ranks agree. A Feistel network over the next power of two, walked until
// it lands inside (Black and Rogaway: "Ciphers with arbitrary finite domains", CT-RSA 2002). Not for secrets.
#pragma once
#include <cstdint>

#include "../core/random.hpp"

namespace skein::inline SKEIN_ABI::data {

/// A pseudo-random bijection of [0, size): `permutation(position)` is the index that stands there. Size 1 to 2^62.
class Permutation {
 public:
  /// The identity.
  constexpr explicit Permutation(std::int64_t size) : size_(static_cast<std::uint64_t>(size)) {}

  /// Keyed: the same for the same (size, seed, epoch, stream) on every rank, thread and machine. `stream` separates orders that
  /// must differ within an epoch (the ranks of Partition::local).
  constexpr Permutation(std::int64_t size, Seed seed, std::int64_t epoch, std::uint64_t stream = 0)
      : size_(static_cast<std::uint64_t>(size)), shuffles_(size > 1) {
    while (size_ > (std::uint64_t{1} << bits_)) ++bits_;
    if (bits_ < 10) passes_ = 16;
    const std::uint64_t key = random_key(random_key(seed.value, purpose + stream), static_cast<std::uint64_t>(epoch));
    for (int i = 0; i < keys; i += 2) {
      const Philox p = Philox::at(key, 0, static_cast<std::uint64_t>(i));
      keys_[i] = static_cast<std::uint64_t>(p.word[0]) << 32 | p.word[1];
      keys_[i + 1] = static_cast<std::uint64_t>(p.word[2]) << 32 | p.word[3];
    }
  }

  constexpr std::int64_t size() const { return static_cast<std::int64_t>(size_); }

  constexpr std::int64_t operator()(std::int64_t position) const {
    std::uint64_t x = static_cast<std::uint64_t>(position);
    if (!shuffles_) return position;
    do x = network(x);
    while (x >= size_);
    return static_cast<std::int64_t>(x);
  }

  /// to[i] = (*this)(first + i) for i in [0, n), many at a time: where walks differ in length, those that have arrived make room
  /// for new ones, without a branch. (A third of the time of one by one, which is a tenth of a step of the function fit.)
  constexpr void fill(std::int64_t first, std::int64_t n, std::int64_t* to) const {
    std::int64_t next = 0;
    if (shuffles_ && n >= 2 * lanes) {
      std::uint64_t x[lanes] = {};
      std::int64_t where[lanes] = {};
      for (; next < lanes; ++next) x[next] = static_cast<std::uint64_t>(first + next), where[next] = next;
      while (next + lanes <= n) {
        network(x);
        for (int l = 0; l < lanes; ++l) {
          const bool arrived = x[l] < size_;
          to[where[l]] = static_cast<std::int64_t>(x[l]);
          x[l] = arrived ? static_cast<std::uint64_t>(first + next) : x[l];
          where[l] = arrived ? next : where[l];
          next += arrived;
        }
      }
      for (int l = 0; l < lanes; ++l) {
        do x[l] = network(x[l]);
        while (x[l] >= size_);
        to[where[l]] = static_cast<std::int64_t>(x[l]);
      }
    }
    for (; next < n; ++next) to[next] = (*this)(first + next);
  }

 private:
  static constexpr int lanes = 16;
  static constexpr int keys = 8;
  static constexpr std::uint64_t purpose = 0x6f72646572ull;  // "order"

  static constexpr std::uint64_t mix(std::uint64_t x) {
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    return x ^ x >> 29;
  }
  /// One pass over the halves: each is changed by a hash of the other, which can be undone: a bijection whatever the hash.
  constexpr std::uint64_t network(std::uint64_t x) const {
    const int low_bits = bits_ / 2, high_bits = bits_ - low_bits;
    const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1, high_mask = (std::uint64_t{1} << high_bits) - 1;
    std::uint64_t low = x & low_mask, high = x >> low_bits;
    for (int i = 0; i < passes_; ++i) {
      const std::uint64_t turn = static_cast<std::uint64_t>(i / 4) << 40;
      high ^= mix(low ^ keys_[i % 4] ^ turn) >> 20 & high_mask;
      low ^= mix(high ^ keys_[i % 4 + 4] ^ turn) >> 20 & low_mask;
    }
    return high << low_bits | low;
  }

  /// Does network() with several numbers: each instruction of the chain works on all of them.
  constexpr void network(std::uint64_t (&x)[lanes]) const {
    const int low_bits = bits_ / 2, high_bits = bits_ - low_bits;
    const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1, high_mask = (std::uint64_t{1} << high_bits) - 1;
    std::uint64_t low[lanes] = {}, high[lanes] = {};
    for (int l = 0; l < lanes; ++l) low[l] = x[l] & low_mask, high[l] = x[l] >> low_bits;
    for (int i = 0; i < passes_; ++i) {
      const std::uint64_t turn = static_cast<std::uint64_t>(i / 4) << 40, first = keys_[i % 4] ^ turn,
                          second = keys_[i % 4 + 4] ^ turn;
      for (int l = 0; l < lanes; ++l) high[l] ^= mix(low[l] ^ first) >> 20 & high_mask;
      for (int l = 0; l < lanes; ++l) low[l] ^= mix(high[l] ^ second) >> 20 & low_mask;
    }
    for (int l = 0; l < lanes; ++l) x[l] = high[l] << low_bits | low[l];
  }

  std::uint64_t size_ = 0;
  std::uint64_t keys_[keys] = {};
  int bits_ = 0, passes_ = 4;  // small halves hide little a pass: they get more of them
  bool shuffles_ = false;
};

}  // namespace skein::inline SKEIN_ABI::data
