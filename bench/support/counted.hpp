// SPDX-License-Identifier: Apache-2.0
// Counts what a steady state must not do: page faults, allocations (every entry of glibc's malloc), oneDNN primitives made. This
// header replaces those functions in the program that includes it: one program, one source.
#pragma once
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if SKEIN_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace bench {
inline std::atomic<long> allocations{0}, inside_onednn{0}, primitives{0};
inline thread_local int onednn_depth = 0;  // calls of oneDNN that this thread is in

inline void count_allocation() {
  ++allocations;
  if (onednn_depth > 0) ++inside_onednn;
}

struct Counts {
  long faults = 0, allocations = 0, inside_onednn = 0, primitives = 0;
  static Counts now() {
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    return {u.ru_minflt + u.ru_majflt, bench::allocations.load(), bench::inside_onednn.load(), bench::primitives.load()};
  }
  friend Counts operator-(const Counts& a, const Counts& b) {
    return {a.faults - b.faults, a.allocations - b.allocations, a.inside_onednn - b.inside_onednn, a.primitives - b.primitives};
  }
};

/// Reads in the program's own pages, so that code which runs for the first time is not counted as a fault.
inline void fault_in_program() {
  if (mlockall(MCL_CURRENT) == 0) munlockall();
}
}  // namespace bench

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

void* malloc(std::size_t n) noexcept { return bench::count_allocation(), __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) noexcept { return bench::count_allocation(), __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) noexcept { return bench::count_allocation(), __libc_realloc(p, n); }
void* memalign(std::size_t alignment, std::size_t n) noexcept { return bench::count_allocation(), __libc_memalign(alignment, n); }
void* aligned_alloc(std::size_t alignment, std::size_t n) noexcept {
  return bench::count_allocation(), __libc_memalign(alignment, n);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t n) noexcept {
  bench::count_allocation();
  *to = __libc_memalign(alignment, n);
  return *to ? 0 : ENOMEM;
}

#if SKEIN_WITH_ONEDNN
#define BENCH_REAL(function) static const auto real = reinterpret_cast<decltype(&function)>(dlsym(RTLD_NEXT, #function))
dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive, const_dnnl_primitive_desc_t description) {
  BENCH_REAL(dnnl_primitive_create);
  ++bench::primitives;
  return real(primitive, description);
}
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int n,
                                     const dnnl_exec_arg_t* arguments) {
  BENCH_REAL(dnnl_primitive_execute);
  ++bench::onednn_depth;
  const dnnl_status_t status = real(primitive, stream, n, arguments);
  --bench::onednn_depth;
  return status;
}
dnnl_status_t dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha, const float* a, dnnl_dim_t lda,
                         const float* b, dnnl_dim_t ldb, float beta, float* c, dnnl_dim_t ldc) {
  BENCH_REAL(dnnl_sgemm);
  ++bench::onednn_depth;
  const dnnl_status_t status = real(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  --bench::onednn_depth;
  return status;
}
#undef BENCH_REAL
#endif
}
