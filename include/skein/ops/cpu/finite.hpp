// SPDX-License-Identifier: Apache-2.0
// Are all sums finite: what is asked of the gradients before a step that may be skipped. One pass, by bits, without branches.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Whether the sums of `count` arrays, value by value over [begin, end), are all finite.
template <class Scalar> bool all_finite(const Scalar* const* arrays, int count, long begin, long end) {
  using Bits = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<Scalar>::infinity());
  constexpr long block = 64;
  Bits bad = 0;
  auto look = [&](long from, long n) {
    Scalar sums[block];
    for (long k = 0; k < n; ++k) sums[k] = arrays[0][from + k];
    for (int a = 1; a < count; ++a)
      for (long k = 0; k < n; ++k) sums[k] += arrays[a][from + k];
    for (long k = 0; k < n; ++k) bad |= static_cast<Bits>((std::bit_cast<Bits>(sums[k]) & exponent) == exponent);
  };
  long i = begin;
  for (; i + block <= end; i += block) look(i, block);
  look(i, end - i);
  return bad == 0;
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
