// SPDX-License-Identifier: Apache-2.0
// Version, the inline namespace, and the few facts about the build that other headers ask for. Includes nothing.
#pragma once

// What a program cannot be compiled with, said before the errors that would follow.
#if __cplusplus < 202002L
#error "skein is written in C++20: compile with -std=c++20, which CMake's skein::skein asks for"
#elif !defined(__cpp_exceptions) && !defined(__CUDACC__)
#error "skein says by exceptions what is wrong: compile without -fno-exceptions"
#elif defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "skein looks for NaNs, and -ffast-math, -Ofast and -ffinite-math-only say that there are none: add -fno-finite-math-only"
#endif

#define SKEIN_VERSION_MAJOR 0
#define SKEIN_VERSION_MINOR 1
#define SKEIN_VERSION_PATCH 0

// What the build found: 1 or 0, asked for by value. CMake's skein::skein says so; without it nothing is taken for granted.
#ifndef SKEIN_WITH_XSIMD
#define SKEIN_WITH_XSIMD 0
#endif
#ifndef SKEIN_WITH_ONEDNN
#define SKEIN_WITH_ONEDNN 0
#endif
#ifndef SKEIN_WITH_ZLIB
#define SKEIN_WITH_ZLIB 0
#endif
#ifndef SKEIN_WITH_JSON
#define SKEIN_WITH_JSON 0
#endif
// The next four are no part of SKEIN_ABI: they change no layout, and no function that a unit without them calls. cuDNN's are in
// headers of cuda/, LAPACK's are K-FAC's, which is refused without, and those of images and HDF5 are templates whose argument is
// the switch.
#ifndef SKEIN_WITH_CUDNN
#define SKEIN_WITH_CUDNN 0
#endif
#ifndef SKEIN_WITH_LAPACK
#define SKEIN_WITH_LAPACK 0
#endif
#ifndef SKEIN_WITH_IMAGES
#define SKEIN_WITH_IMAGES 0
#endif
#ifndef SKEIN_WITH_HDF5
#define SKEIN_WITH_HDF5 0
#endif

// 1: the bodies of what does not depend on a network (the files .ipp) are in the library skein::compiled, which a program is
// linked to; 0: the headers bring them.
#ifndef SKEIN_COMPILED
#define SKEIN_COMPILED 0
#endif
#if SKEIN_COMPILED
#define SKEIN_INLINE
#else
#define SKEIN_INLINE inline
#endif
// The same of comm/mpi/, whose bodies are in skein::compiled_mpi.
#ifndef SKEIN_COMPILED_MPI
#define SKEIN_COMPILED_MPI 0
#endif
#if SKEIN_COMPILED_MPI
#define SKEIN_MPI_INLINE
#else
#define SKEIN_MPI_INLINE inline
#endif

// 1: a debug build, which looks at indices, sizes, and whether copies of weights are fresh. Without a word of the build: where
// the compiler does not optimise and NDEBUG is not defined. No layout of a type depends on it.
#ifndef SKEIN_CHECKED
#if defined(NDEBUG) || defined(__OPTIMIZE__)
#define SKEIN_CHECKED 0
#else
#define SKEIN_CHECKED 1
#endif
#endif

// Around the bodies of an .ipp that no step waits for, or whose loops another function has: g++ compiles them with -Og where it
// would with -O2, in half the time, and does not copy them into what calls them. A constructor or destructor takes it from its
// declaration, so that it stands around such classes too. In the library, in a debug build and for other compilers they are
// empty.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && \
    !SKEIN_COMPILED
#define SKEIN_BEGIN_COLD _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")")
#define SKEIN_END_COLD _Pragma("GCC pop_options")
#else
#define SKEIN_BEGIN_COLD
#define SKEIN_END_COLD
#endif

// Translation units compiled for different instruction sets, or with different options, must not meet at link time: the inline
// namespace carries both beside the version, as v0_1_avx512_x1o1z1j0 (no JSON), so that the linker names them. Not cuDNN,
// LAPACK, images and HDF5: a unit that has them goes with units that have not.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#define SKEIN_INSTRUCTION_SET avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define SKEIN_INSTRUCTION_SET avx2
#elif defined(__ARM_NEON)
#define SKEIN_INSTRUCTION_SET neon
#else
#define SKEIN_INSTRUCTION_SET generic
#endif
#define SKEIN_JOIN_ABI(major, minor, set, xsimd, onednn, zlib, json) \
  v##major##_##minor##_##set##_x##xsimd##o##onednn##z##zlib##j##json
#define SKEIN_EXPAND_ABI(major, minor, set, xsimd, onednn, zlib, json) \
  SKEIN_JOIN_ABI(major, minor, set, xsimd, onednn, zlib, json)
#define SKEIN_ABI                                                                                                        \
  SKEIN_EXPAND_ABI(SKEIN_VERSION_MAJOR, SKEIN_VERSION_MINOR, SKEIN_INSTRUCTION_SET, SKEIN_WITH_XSIMD, SKEIN_WITH_ONEDNN, \
                   SKEIN_WITH_ZLIB, SKEIN_WITH_JSON)

#if defined(__GNUC__) || defined(__clang__)
#define SKEIN_ALWAYS_INLINE inline __attribute__((always_inline))
#define SKEIN_NOINLINE __attribute__((noinline))
#else
#define SKEIN_ALWAYS_INLINE inline
#define SKEIN_NOINLINE
#endif

// Behind the parameters of what gives a view of its object: clang then warns of one that outlives the statement (-Wdangling),
// where a use within the statement is right and no overload can tell them apart. g++ has no such word.
#if defined(__clang__) && !defined(__CUDACC__)
#define SKEIN_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define SKEIN_LIFETIME_BOUND
#endif

// Around what includes the compiler's intrinsics: gcc 12 says of its own that they may be uninitialized (PR 105593), in every
// program that is compiled with -Wall for vectors, SYSTEM headers or not.
#if defined(__GNUC__) && !defined(__clang__)
#define SKEIN_BEGIN_INTRINSICS                                                         \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
      _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define SKEIN_END_INTRINSICS _Pragma("GCC diagnostic pop")
#else
#define SKEIN_BEGIN_INTRINSICS
#define SKEIN_END_INTRINSICS
#endif

// Around loops for vectors that say `#pragma GCC unroll`: nvcc hands the pragma to the host's compiler, and warns that it does
// not know it.
#if defined(__CUDACC__) && defined(__NVCC__)
#define SKEIN_BEGIN_UNROLLED _Pragma("nv_diagnostic push") _Pragma("nv_diag_suppress 1675")
#define SKEIN_END_UNROLLED _Pragma("nv_diagnostic pop")
#else
#define SKEIN_BEGIN_UNROLLED
#define SKEIN_END_UNROLLED
#endif

// A function that kernels call and that cannot be constexpr; constexpr ones need no mark (nvcc's --expt-relaxed-constexpr).
#if defined(__CUDACC__)
#define SKEIN_HOST_DEVICE __host__ __device__
#else
#define SKEIN_HOST_DEVICE
#endif

#if SKEIN_COMPILED
namespace skein::inline SKEIN_ABI {
/// What a linker misses where skein::compiled was built with other SKEIN_WITH_... or for another instruction set than a program
/// that is linked to it: the namespace in the symbol says what the program was compiled with.
void this_library_was_built_with_other_options_or_instruction_set();
namespace detail {
[[gnu::used]] inline void (*const same_library)() = &this_library_was_built_with_other_options_or_instruction_set;
}  // namespace detail
}  // namespace skein::inline SKEIN_ABI
#endif
