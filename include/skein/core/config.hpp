// SPDX-License-Identifier: Apache-2.0
// Version, the inline namespace, and the few facts about the build that other headers ask for. Includes nothing.
#pragma once

#define SKEIN_VERSION_MAJOR 0
#define SKEIN_VERSION_MINOR 1
#define SKEIN_VERSION_PATCH 0

// Translation units compiled for different instruction sets must not meet at link time: the inline namespace carries both.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#define SKEIN_ABI v0_1_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define SKEIN_ABI v0_1_avx2
#elif defined(__ARM_NEON)
#define SKEIN_ABI v0_1_neon
#else
#define SKEIN_ABI v0_1_generic
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SKEIN_ALWAYS_INLINE inline __attribute__((always_inline))
#define SKEIN_NOINLINE __attribute__((noinline))
#else
#define SKEIN_ALWAYS_INLINE inline
#define SKEIN_NOINLINE
#endif

// A function that kernels call and that cannot be constexpr; constexpr ones need no mark (nvcc's --expt-relaxed-constexpr).
#if defined(__CUDACC__)
#define SKEIN_HOST_DEVICE __host__ __device__
#else
#define SKEIN_HOST_DEVICE
#endif
