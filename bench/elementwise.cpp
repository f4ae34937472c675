// SPDX-License-Identifier: Apache-2.0
// ctest expects: 1000000
// Is the fused expression relu(u * v + w) as fast as a loop written by hand, and what does a call cost where it is short? Three
// reads and a write of n floats on one thread; both sides in one process, in slices taken in the order ABBA; the figures are
// minima, the ratio is the median of the paired ratios. The values are compared before anything is timed.
#include <skein/tensor/create.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace sk = skein;
using Vector = sk::Tensor<float, 1>;

namespace {
SKEIN_NOINLINE void fused(Vector& y, const Vector& u, const Vector& v, const Vector& w) { y = relu(u * v + w); }

/// The loop that the compiler vectorises best: no aliasing, no tail but its own.
SKEIN_NOINLINE void by_hand(float* __restrict__ y, const float* __restrict__ u, const float* __restrict__ v, const float* __restrict__ w, long n) {
  for (long i = 0; i < n; ++i) {
    const float x = u[i] * v[i] + w[i];
    y[i] = x < 0 ? 0 : x;
  }
}

/// Milliseconds a call, over about 2 ms of calls.
template <class Work> double slice(long calls, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < calls; ++i) work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(calls);
}
}  // namespace

int main() {
  std::printf("%10s %12s %12s %8s %10s\n", "floats", "fused ms", "by hand ms", "ratio", "GB/s");
  for (long n : {1'000L, 100'000L, 1'000'000L}) {
    const Vector u = sk::normal<float>(sk::Seed{1}, sk::dims(n)), v = sk::normal<float>(sk::Seed{2}, sk::dims(n)), w = sk::normal<float>(sk::Seed{3}, sk::dims(n));
    Vector y(sk::dims(n)), z(sk::dims(n));
    const auto ours = [&] { fused(y, u, v, w); };
    const auto hand = [&] { by_hand(z.data(), u.data(), v.data(), w.data(), n); };
    ours();
    hand();
    for (long i = 0; i < n; ++i)
      if (!(y(i) - z(i) <= 1e-6f && z(i) - y(i) <= 1e-6f)) {
        std::printf("value %ld differs: %g and %g\n", i, static_cast<double>(y(i)), static_cast<double>(z(i)));
        return 1;
      }
    const long calls = 4'000'000 / n + 1;
    double best_ours = 1e9, best_hand = 1e9;
    std::vector<double> ratios;
    for (int round = 0; round < 60; ++round) {
      double a, b;
      if (round % 2 == 0) a = slice(calls, ours), b = slice(calls, hand);
      else b = slice(calls, hand), a = slice(calls, ours);
      best_ours = std::min(best_ours, a);
      best_hand = std::min(best_hand, b);
      ratios.push_back(a / b);
    }
    std::nth_element(ratios.begin(), ratios.begin() + 30, ratios.end());
    std::printf("%10ld %12.6f %12.6f %8.3f %10.1f\n", n, best_ours, best_hand, ratios[30], 16e-6 * static_cast<double>(n) / best_ours);
  }
}
