// SPDX-License-Identifier: Apache-2.0
// Large matrix products on a GPU in fp32, tf32 and bf16, against PyTorch's: both call cuBLAS, so the ratio shows what is around
// it.
#include "support/apart.hpp"
#include "support/gpu.hpp"

namespace {
namespace sk = skein;
using namespace bench;

/// The corners and the middle of C are checked against sums in double precision.
template <class S>
bool measure(Report& report, const std::string& precision, bool tf32, long m, long n, long k, double tolerance) {
  const sk::Cuda device{};
  std::vector<S> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), c(static_cast<std::size_t>(m * n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<S>(2 * sk::random_uniform(1, 0, i) - 1);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<S>(2 * sk::random_uniform(2, 0, i) - 1);
  sk::Arena<S, sk::Cuda> A(a.size(), device), B(b.size(), device), C(c.size(), device);
  sk::Memory<sk::Cuda>::from_host(A.data(), a.data(), a.size() * sizeof(S), device);
  sk::Memory<sk::Cuda>::from_host(B.data(), b.data(), b.size() * sizeof(S), device);
  const auto product = [&] {
    constexpr cudaDataType_t type = sk::ops::cublas::type_of<S>;
    sk::ops::cublas::multiply({.m = m,
                               .n = n,
                               .k = k,
                               .a = A.data(),
                               .b = B.data(),
                               .d = C.data(),
                               .lda = k,
                               .ldb = n,
                               .ldd = n,
                               .type = type,
                               .result = type,
                               .tf32 = tf32});
  };
  product();
  sk::Memory<sk::Cuda>::to_host(c.data(), C.data(), c.size() * sizeof(S), device);
  double worst = 0;
  for (long i : {0L, m / 2, m - 1})
    for (long j : {0L, n / 3, n - 1}) {
      double sum = 0, size = 0;
      for (long p = 0; p < k; ++p) {
        const double term = static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) *
                            static_cast<double>(b[static_cast<std::size_t>(p * n + j)]);
        sum += term, size += std::fabs(term);
      }
      worst = larger(worst, (sum - static_cast<double>(c[static_cast<std::size_t>(i * n + j)])) / size);
    }
  Line l{.metric = number(static_cast<double>(m)) + " x " + number(static_cast<double>(n)) + " x " +
                   number(static_cast<double>(k)) + ", " + precision,
         .must = {1.05},
         .hope = {1.0}};
  const auto peer = gpu_peer("operation.py", {"gemm", std::to_string(m), std::to_string(n), std::to_string(k)},
                             {1, false, false, false, "--" + precision});
  const bool right = against_on_gpu(l, gpu_candidate(product), peer.get(),
                                    worst < tolerance ? "" : "the result is wrong by " + number(worst), report.quick());
  l.add(gpu_name() + ", " + number(2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / *l.ours) +
        " TFLOP/s");
  report.add(l);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  need_gpu(argv[0]);
  Report report("cuda/gemm", options(argc, argv));
  bool right = true;
  for (const auto& [m, n, k] : {std::tuple{4096L, 4096L, 4096L}, {8192L, 8192L, 8192L}, {128L, 4096L, 4096L}}) {
    right &= measure<float>(report, "fp32", false, m, n, k, 1e-6);
    right &= measure<float>(report, "tf32", true, m, n, k, 1e-3);
    right &= measure<sk::bf16>(report, "bf16", false, m, n, k, 1e-2);
  }
  return report.finish(right);
}
