// SPDX-License-Identifier: Apache-2.0
// Sums of x^T x, half of whose entries are enough: what second moments are made of.
#pragma once
#include <algorithm>

#include "gemm.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// c += factor x^T x, its lower triangle (and what of the upper one lies in blocks of the diagonal): x is (rows, columns), its
/// rows `pitch` scalars apart; c is (columns, columns), its rows `c_pitch` apart. On the calling thread.
template <class Scalar>
void add_symmetric_product(long rows, long columns, Scalar factor, const Scalar* x, long pitch, Scalar* c, long c_pitch) {
  constexpr long block = 96;
  for (long j = 0; j < columns; j += block) {
    const long n = std::min(block, columns - j);
    gemm<Cpu>(Transpose::yes, Transpose::no, n, j + n, rows, factor, x + j, pitch, x, pitch, Scalar(1), c + j * c_pitch, c_pitch);
  }
}

}  // namespace skein::inline SKEIN_ABI::ops
