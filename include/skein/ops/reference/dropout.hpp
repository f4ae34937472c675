// SPDX-License-Identifier: Apache-2.0
// Dropout as a plain loop: the oracle of the tests. Element e of sample s is kept where word e mod 4 of Philox block e / 4 of
// the stream s is not below the rate.
#pragma once
#include <cstdint>

#include "../../core/random.hpp"
#include "../step_values.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Rows of n values, `pitch` apart (gaps become zero); row r is sample first + r of the global batch.
struct DropoutShape {
  long rows = 0, n = 0, pitch = 0;
  std::uint64_t key = 0, first = 0;
  const StepValues* values = nullptr;  ///< in the device's memory; null on the Cpu. Where it is there, key is made of it
  std::uint64_t purpose = 0;           ///< and this, and first counts from its global_first
};

/// Words below it are dropped; 2^32 drops all.
constexpr std::uint64_t dropout_threshold(double rate) { return static_cast<std::uint64_t>(rate * 4294967296.0 + 0.5); }

namespace reference {
/// y = x / (1 - rate) where the element's random number keeps it, else 0. The same call on dy is its gradient.
template <class Scalar> void dropout(const DropoutShape& s, double rate, const Scalar* x, Scalar* y) {
  const std::uint64_t threshold = dropout_threshold(rate);
  const Scalar scale = rate < 1 ? static_cast<Scalar>(1 / (1 - rate)) : Scalar(0);
  for (long r = 0; r < s.rows; ++r)
    for (long e = 0; e < s.pitch; ++e) {
      const bool kept =
          e < s.n && random_word(s.key, s.first + static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(e)) >= threshold;
      y[r * s.pitch + e] = kept ? x[r * s.pitch + e] * scale : Scalar(0);
    }
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
