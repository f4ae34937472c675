// SPDX-License-Identifier: Apache-2.0
// Vectors of a chosen number of lanes for kernels with compile-time blocking: names over xsimd batches, and the choice of the
// lanes that waste least on a row of n values. Only where xsimd is there.
#pragma once
#include <type_traits>

#include "../../core/config.hpp"

#if SKEIN_WITH_XSIMD
SKEIN_BEGIN_INTRINSICS
#include <xsimd/xsimd.hpp>
SKEIN_END_INTRINSICS
#if XSIMD_VERSION_MAJOR != 8
#error "skein takes xsimd 8, 9 has other names: let its headers come first, or compile with -DSKEIN_WITH_XSIMD=0"
#endif

namespace skein::inline SKEIN_ABI::ops::cpu {

template <class Scalar, int Lanes> using Vector = xsimd::make_sized_batch_t<Scalar, Lanes>;

/// Lanes of the widest vector.
template <class Scalar> inline constexpr int widest_lanes = static_cast<int>(xsimd::batch<Scalar>::size);

/// Accumulators that fit beside a few operands into the registers.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int accumulators = 26;
#else
inline constexpr int accumulators = 12;
#endif

/// How products of matrices are cut, so that blocks stay in the caches.
struct Blocking {
  long rows, whole_rows;  ///< rows that packed panels take at a time, and what they are a multiple of
  long depth;             ///< rows of a weight whose panel stays in the second-level cache
  long gradient_rows;     ///< rows that a gradient of weights adds up at a time
  long far_rows;          ///< rows of a weight that are copied from where they lie far apart
  long one_pass_weights;  ///< of up to so many, both gradients are made in one pass over blocks of rows,
  long fewer, more;       ///< of so many values of inputs and outputs where outputs are fewer than inputs, or more
  long streamed_bytes;    ///< from so many on, results pass the caches
};
/// Measured on cores with 32 vector registers and 1 MiB of second-level cache or more.
inline constexpr Blocking many_registers{.rows = 240,
                                         .whole_rows = 1,
                                         .depth = 512,
                                         .gradient_rows = 512,
                                         .far_rows = 512,
                                         .one_pass_weights = 128 * 1024,
                                         .fewer = 36 * 1024,
                                         .more = 48 * 1024,
                                         .streamed_bytes = 16 * 1024 * 1024};
/// Measured on cores with 16, and 512 KiB.
inline constexpr Blocking few_registers{.rows = 120,
                                        .whole_rows = 12,  // tiles of 2 and 3 vectors
                                        .depth = 1024,
                                        .gradient_rows = 256,
                                        .far_rows = 512,
                                        .one_pass_weights = 16 * 1024,
                                        .fewer = 24 * 1024,
                                        .more = 24 * 1024,
                                        .streamed_bytes = 32 * 1024 * 1024};
inline constexpr Blocking blocking = accumulators > 16 ? many_registers : few_registers;

/// Lanes for rows of n values: the least time of whole vectors, then the widest. 128-bit operations cost what 256-bit ones do.
template <class Scalar> constexpr int best_lanes(int n) {
  const int wide = widest_lanes<Scalar>, half = wide * static_cast<int>(sizeof(Scalar)) > 32 ? wide / 2 : wide;
  return half < wide && (n + half - 1) / half * half < (n + wide - 1) / wide * wide ? half : wide;
}

/// a b + c, rounded once. xsimd's own of AVX-512 is a product and a sum: the compiler joins them only where it optimises, and,
/// where c is a product too, the one that it chooses, so that the same sum had other bits in other code.
template <class V> SKEIN_ALWAYS_INLINE V fused(const V& a, const V& b, const V& c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) {
    if constexpr (std::is_same_v<typename V::value_type, float>) return V(_mm512_fmadd_ps(a, b, c));
    else return V(_mm512_fmadd_pd(a, b, c));
  } else
#endif
    return xsimd::fma(a, b, c);
}
/// A vector of the values at p, which need not be aligned.
template <class V, class Scalar> SKEIN_ALWAYS_INLINE V load_from(const Scalar* p) { return V::load_unaligned(p); }
/// Writes a vector to p, which need not be aligned.
template <class V, class Scalar> SKEIN_ALWAYS_INLINE void store_to(Scalar* p, const V& v) { v.store_unaligned(p); }

/// Writes a vector to p, a multiple of its size, past the caches where the processor can: what is there is not read before.
template <class V, class Scalar> SKEIN_ALWAYS_INLINE void stream_to(Scalar* p, const V& v) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<Scalar, float> && V::size == 16) return _mm512_stream_ps(p, v.data);
#endif
#if defined(__AVX__)
  if constexpr (std::is_same_v<Scalar, float> && V::size == 8) return _mm256_stream_ps(p, v.data);
#endif
  v.store_aligned(p);
}
/// After the last of a thread's stream_to(): others see what it wrote before what it writes from here on.
SKEIN_ALWAYS_INLINE void end_streams() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

/// Keeps a loaded value in its register: else the compiler loads it anew for each use.
template <class V> SKEIN_ALWAYS_INLINE void keep([[maybe_unused]] V& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v.data));
#elif defined(__AVX__)
  asm("" : "+x"(v.data));
#endif
}

/// Lanes that hold small whole numbers, as bytes. (Compilers make scalar code of this loop where lanes are floating-point.)
template <int Lanes, class V> SKEIN_ALWAYS_INLINE void store_bytes(unsigned char* to, const V& v) {
  using Scalar = typename V::value_type;
#if defined(__AVX512F__)
  if constexpr (sizeof(Scalar) == 4 && Lanes == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v.data)));
    return;
  }
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(Scalar) == 4 && Lanes == 8) {
    const __m256i wide = _mm256_cvttps_epi32(v.data);
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
    return;
  }
#endif
  alignas(64) Scalar lanes[Lanes];
  v.store_aligned(lanes);
  for (int i = 0; i < Lanes; ++i) to[i] = static_cast<unsigned char>(static_cast<int>(lanes[i]));
}

/// Bytes as lanes.
template <class V, int Lanes> SKEIN_ALWAYS_INLINE V load_bytes(const unsigned char* from) {
  using Scalar = typename V::value_type;
#if defined(__AVX512F__)
  if constexpr (sizeof(Scalar) == 4 && Lanes == 16)
    return V(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))));
  else
#endif
#if defined(__AVX2__)
      if constexpr (sizeof(Scalar) == 4 && Lanes == 8)
    return V(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))));
  else
#endif
  {
    alignas(64) Scalar lanes[Lanes];
    for (int i = 0; i < Lanes; ++i) lanes[i] = static_cast<Scalar>(from[i]);
    return V::load_aligned(lanes);
  }
}

/// Hides where a pointer came from: else the compiler keeps what it loaded for one tap for the next ones, and spills.
template <class T> SKEIN_ALWAYS_INLINE void forget(T*& p) { asm("" : "+r"(p)); }
/// Hides where two pointers came from at once. A p that was hidden beside another q is another pointer.
template <class T, class U> SKEIN_ALWAYS_INLINE void forget(T*& p, U*& q) { asm("" : "+r"(p), "+r"(q)); }

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
