// SPDX-License-Identifier: Apache-2.0
// A matrix of values as two thin ones: PowerSGD, Vogels, Karimireddy, Jaggi, NeurIPS 2019. Linear in each of its two rounds: P =
// M Q is added over the ranks and made orthonormal, then Q = M' P is added; the result is P Q'. Q is kept for the next call (one
// power iteration a step), so that what changes slowly is found better and better. Wants error feedback.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/random.hpp"
#include "compressor.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// n values as a matrix of nearly square shape (or of the rows that it is made with), its end filled with zeros; 4 Rank (rows +
/// columns) bytes. All ranks make it with the same seed. One object for one range of values, since it keeps Q. Allocates in the
/// first call.
template <int Rank> class PowerSgd {
 public:
  static_assert(Rank >= 1, "PowerSgd<Rank>: the rank of the approximation is 1 or more");
  static constexpr std::string_view name = "PowerSGD";
  static constexpr bool linear = true;
  static constexpr int rounds = 2;
  static constexpr bool remembers = true, by_matrix = true;
  using Element = float;

  constexpr explicit PowerSgd(std::uint64_t seed = 0, std::size_t rows = 0) : seed_(seed), rows_(rows) {}

  /// The compressor of a matrix of so many rows.
  static PowerSgd for_matrix(std::uint64_t seed, std::size_t rows) { return PowerSgd(seed, rows); }

  constexpr std::size_t rows(std::size_t n) const {
    if (rows_) return rows_;
    std::size_t r = 1;
    while (r * r < n) ++r;
    return r;
  }
  constexpr std::size_t columns(std::size_t n) const { return (n + rows(n) - 1) / rows(n); }
  constexpr std::size_t elements(std::size_t n, int round) const { return Rank * (round == 0 ? rows(n) : columns(n)); }

  /// Round 0: P = M Q. Round 1: Q = M' P, with the P that take() was given.
  void encode(std::span<const float> values, std::span<float> wire, int round) {
    begin(values.size());
    if (round == 0) finite(q_) ? start_zero_columns() : start();
    std::fill(wire.begin(), wire.end(), 0.0f);
    for_each(values, [&](std::size_t row, std::size_t column, float x) {
      float* to = wire.data() + Rank * (round == 0 ? row : column);
      const float* other = round == 0 ? q_.data() + Rank * column : p_.data() + Rank * row;
      for (int k = 0; k < Rank; ++k) to[k] += x * other[k];
    });
  }
  /// What all ranks have made of a round's wire.
  void take(std::span<const float> wire, int round) {
    if (round == 0) {
      p_.assign(wire.begin(), wire.end());
      orthonormalize(p_);
    } else {
      q_.assign(wire.begin(), wire.end());
    }
  }
  /// P Q' of the wire of round 1.
  void decode(std::span<const float> wire, std::span<float> values) const {
    const std::size_t width = columns(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float *p = p_.data() + Rank * (i / width), *q = wire.data() + Rank * (i % width);
      float sum = 0;
      for (int k = 0; k < Rank; ++k) sum += p[k] * q[k];
      values[i] = sum;
    }
  }

  /// Q, which a training saves: empty before the first call.
  std::span<const float> memory() const { return q_; }
  /// Goes on with a Q that was saved, of n values.
  void remember(std::span<const float> q, std::size_t n) {
    begin(n);
    if (q.size() != q_.size())
      throw ArgumentError(text("PowerSgd: what it remembers of {} values are {}; it gets {}", n, q_.size(), q.size()));
    q_.assign(q.begin(), q.end());
  }

 private:
  template <class F> void for_each(std::span<const float> values, F&& f) const {
    const std::size_t width = columns(values.size());
    for (std::size_t row = 0, i = 0; i < values.size(); ++row)
      for (std::size_t column = 0; column < width && i < values.size(); ++column) f(row, column, values[i++]);
  }
  void begin(std::size_t n) {
    const std::size_t size = elements(n, 1);
    if (q_.size() == size && count_ == n) return;
    if (count_ != 0)
      throw ArgumentError(text("PowerSgd: one object serves one range of values; it has had {} values, and gets {}", count_, n));
    count_ = n;
    q_.resize(size);
    p_.assign(elements(n, 0), 0.0f);
    start();
  }
  /// The Q of the first call; also after a call with values that were not finite, which is a Q of all ranks.
  void start() {
    for (std::size_t k = 0; k < Rank; ++k) start_column(k);
  }
  void start_column(std::size_t k) {
    for (std::size_t i = k; i < q_.size(); i += Rank) q_[i] = random_normal(random_key(seed_, 0x506f77), 0, i);
  }
  /// Values of a smaller rank, or all zero, leave columns of Q zero, which would stay so: nothing more would be sent of them.
  void start_zero_columns() {
    for (std::size_t k = 0; k < Rank; ++k) {
      bool zero = true;
      for (std::size_t i = k; i < q_.size(); i += Rank) zero = zero && q_[i] == 0;
      if (zero) start_column(k);
    }
  }
  static bool finite(const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [](float v) { return v - v == 0; });
  }
  /// Gram-Schmidt; a column that depends on those before it becomes zero.
  static void orthonormalize(std::vector<float>& m) {
    const auto dot = [&](int a, int b) {
      double sum = 0;
      for (std::size_t i = 0; i < m.size(); i += Rank)
        sum += static_cast<double>(m[i + static_cast<std::size_t>(a)]) * static_cast<double>(m[i + static_cast<std::size_t>(b)]);
      return sum;
    };
    for (int k = 0; k < Rank; ++k) {
      const double before = dot(k, k);
      for (int turn = 0; turn < 2; ++turn)  // twice is enough (Kahan)
        for (int j = 0; j < k; ++j) {
          const double along = dot(j, k);
          for (std::size_t i = 0; i < m.size(); i += Rank)
            m[i + static_cast<std::size_t>(k)] -=
                static_cast<float>(along * static_cast<double>(m[i + static_cast<std::size_t>(j)]));
        }
      const double left = dot(k, k), factor = left > 1e-10 * before && left > 1e-60 ? 1 / std::sqrt(left)
                                              : left == left                        ? 0
                                                                                    : left;
      for (std::size_t i = 0; i < m.size(); i += Rank)
        m[i + static_cast<std::size_t>(k)] = static_cast<float>(static_cast<double>(m[i + static_cast<std::size_t>(k)]) * factor);
    }
  }

  std::uint64_t seed_;
  std::size_t rows_, count_ = 0;
  std::vector<float> p_, q_;
};

}  // namespace skein::inline SKEIN_ABI::comm
