// SPDX-License-Identifier: Apache-2.0
// A transposed copy of a matrix: blocks of 8 x 8 in registers for floats where there is AVX, plain loops for the rest.
#pragma once
#include <type_traits>

#include "interleave.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// to(j, i) = from(i, j) for i < rows, begin <= j < end.
template <class Scalar>
void transpose(long rows, long begin, long end, const Scalar* from, long pitch, Scalar* to, long to_pitch) {
  long whole_rows = 0, whole_end = begin;
#if defined(__AVX__)
  if constexpr (std::is_same_v<Scalar, float>) {
    whole_rows = rows / 8 * 8;
    whole_end = begin + (end - begin) / 8 * 8;
    for (long i = 0; i < whole_rows; i += 8)
      for (long j = begin; j < whole_end; j += 8)
        detail::interleave8(from + i * pitch + j, pitch, to + j * to_pitch + i, to_pitch);
  }
#endif
  for (long i = 0; i < rows; ++i)
    for (long j = i < whole_rows ? whole_end : begin; j < end; ++j) to[j * to_pitch + i] = from[i * pitch + j];
}
#if SKEIN_COMPILED
extern template void transpose<float>(long, long, long, const float*, long, float*, long);
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
