// SPDX-License-Identifier: Apache-2.0
// What this machine is: instruction set, compiler, load, and the floor that no program gets below: the rate of a core's matrix
// product and the bandwidth of the memory that holds so many bytes, measured in this run.
#pragma once
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <skein/device/memory.hpp>
#include <skein/ops/gemm.hpp>

#include "slices.hpp"

namespace bench {

inline std::string instruction_set() {
#if defined(__AVX512F__)
  std::string text = "AVX-512";
#elif defined(__AVX2__)
  std::string text = "AVX2";
#elif defined(__ARM_NEON)
  std::string text = "NEON";
#else
  std::string text = "baseline";
#endif
#if SKEIN_WITH_ONEDNN
  char isa[32];
  std::snprintf(isa, sizeof isa, "0x%x", static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
  const std::string code = isa;
  text += ", oneDNN " + std::to_string(dnnl_version()->major) + "." + std::to_string(dnnl_version()->minor) + " says " +
          (code == "0x7"    ? "avx2"
           : code == "0x27" ? "avx512_core"
           : code == "0x67" ? "avx512_core_vnni"
           : code == "0xe7" ? "avx512_core_bf16"
                            : code);
#endif
#if defined(__clang__)
  text += ", clang++ " __clang_version__;
#else
  text += ", g++ " __VERSION__;
#endif
#if !defined(__OPTIMIZE__)
  text += ", not optimized";
#endif
  return text;
}

inline double load() {
  double l[1] = {0};
  return getloadavg(l, 1) == 1 ? l[0] : -1;
}

/// This thread, and threads and processes that it starts, may run on all cores, or on one of them.
inline void bind_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (core >= 0) CPU_SET(core, &set);
  else
    for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// Flops a second of one core's matrix product, at its best.
inline double gemm_rate(bool quick) {
  constexpr long n = 384;
  skein::Arena<float> a(n * n), b(n * n), c(n * n);
  std::fill_n(a.data(), n * n, 0.5f);
  std::fill_n(b.data(), n * n, 0.25f);
  auto product = [&] {
    skein::ops::gemm<skein::Cpu>(skein::ops::Transpose::no, skein::ops::Transpose::no, n, n, n, 1.f, a.data(), n, b.data(), n,
                                 0.f, c.data(), n);
  };
  product();
  double least = 1e9;
  for (int i = 0; i < (quick ? 60 : 300); ++i) least = std::min(least, timed(1, product).wall);
  return 2.0 * n * n * n / least;
}

/// to[i] = x[i] + y[i] + z[i], n of them, a multiple of 64: blocks of a length that the compiler knows, since g++ makes vectors
/// at -O2 of such loops alone.
inline void sweep(const float* x, const float* y, const float* z, float* to, long n) {
  for (long i = 0; i < n; i += 64) {
#if !defined(__clang__)
#pragma GCC ivdep
#endif
    for (long k = 0; k < 64; ++k) to[i + k] = x[i + k] + y[i + k] + z[i + k];
  }
}

/// Bytes a second of one core, over a working set of so many bytes that is read three parts and written one.
inline double bandwidth(long bytes, bool quick) {
  const long n = std::max(64L, bytes / 16 / 64 * 64);
  const auto size = static_cast<std::size_t>(n);
  skein::Arena<float> a(size), b(size), c(size), d(size);
  const Candidate sweeps = candidate([&] {
    sweep(a.data(), b.data(), c.data(), d.data(), n);
    asm volatile("" ::"r"(d.data()) : "memory");
  });
  const long times = count_for(sweeps, 0.001);
  double least = 1e9;
  for (int i = 0; i < (quick ? 60 : 300); ++i) least = std::min(least, sweeps(times).wall / static_cast<double>(times));
  return 16.0 * static_cast<double>(n) / least;
}

}  // namespace bench
