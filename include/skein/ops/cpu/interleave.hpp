// SPDX-License-Identifier: Apache-2.0
// Planes to pixels: `channels` lines of values become pixels of `channels` values (the end of a kernel that vectorised over the
// width). Blocks of 8 x 8 in registers where there is AVX, else a plain loop.
#pragma once
#include "../../core/config.hpp"

#if defined(__AVX__)
SKEIN_BEGIN_INTRINSICS
#include <immintrin.h>
SKEIN_END_INTRINSICS
#endif

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

#if defined(__AVX__)
namespace detail {
/// Eight lines of eight values, `pitch` apart, become eight pixels, `to_pitch` apart.
SKEIN_ALWAYS_INLINE void interleave8(const float* from, long pitch, float* to, long to_pitch) {
  __m256 a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {  // halves of lines i and i + 4 side by side: no crossing of lanes is left
    a[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * pitch)), _mm_loadu_ps(from + (i + 4) * pitch), 1);
    a[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * pitch + 4)),
                                    _mm_loadu_ps(from + (i + 4) * pitch + 4), 1);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    b[h] = _mm256_unpacklo_ps(a[h], a[h + 1]);
    b[h + 1] = _mm256_unpackhi_ps(a[h], a[h + 1]);
    b[h + 2] = _mm256_unpacklo_ps(a[h + 2], a[h + 3]);
    b[h + 3] = _mm256_unpackhi_ps(a[h + 2], a[h + 3]);
    _mm256_storeu_ps(to + h * to_pitch, _mm256_shuffle_ps(b[h], b[h + 2], 0x44));
    _mm256_storeu_ps(to + (h + 1) * to_pitch, _mm256_shuffle_ps(b[h], b[h + 2], 0xEE));
    _mm256_storeu_ps(to + (h + 2) * to_pitch, _mm256_shuffle_ps(b[h + 1], b[h + 3], 0x44));
    _mm256_storeu_ps(to + (h + 3) * to_pitch, _mm256_shuffle_ps(b[h + 1], b[h + 3], 0xEE));
  }
}
}  // namespace detail

/// The lines must be readable up to the next multiple of 8 in both directions; `to` has room for n + 8 pixels and 8 values.
template <int Channels> void interleave(const float* from, long pitch, int n, float* to) {
  for (int j = 0; j < n; j += 8)
    for (int c = (Channels - 1) / 8 * 8; c >= 0; c -= 8)  // the last block first: what it writes too much is mended
      detail::interleave8(from + c * pitch + j, pitch, to + 1L * j * Channels + c, Channels);
}
#endif

template <int Channels, class Scalar> void interleave(const Scalar* from, long pitch, int n, Scalar* to) {
  for (int j = 0; j < n; ++j)
    for (int c = 0; c < Channels; ++c) to[1L * j * Channels + c] = from[c * pitch + j];
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
