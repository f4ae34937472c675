// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/kfac/kfac.hpp>
#include <skein/ops/symmetric_inverse.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>
#include <skein/core/random.hpp>

#include "../support/larger.hpp"

namespace ops = skein::ops;

TEMPLATE_TEST_CASE("A matrix by its inverse is the identity, whatever its size", "[ops]", float, double) {
  for (const long n : {1L, 7L, 48L, 97L, 130L, 289L}) {
    const auto at = [&](long i, long j) { return static_cast<std::size_t>(i * n + j); };
    std::vector<TestType> x(static_cast<std::size_t>(n * n)), a(x.size(), TestType(0));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<TestType>(skein::random_uniform(7, 0, i)) - TestType(0.5);
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) {
        for (long k = 0; k < n; ++k) a[at(i, j)] += x[at(k, i)] * x[at(k, j)] / static_cast<TestType>(n);
        if (i == j) a[at(i, j)] += TestType(0.05);
      }
    std::vector<TestType> inverse = a;
    ops::cpu::LapackWork<TestType> work;
    REQUIRE(ops::invert_symmetric(n, inverse.data(), work));
    double apart = 0;
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) {
        double sum = i == j ? -1 : 0;
        for (long k = 0; k < n; ++k) sum += static_cast<double>(a[at(i, k)]) * static_cast<double>(inverse[at(k, j)]);
        apart = support::larger(apart, sum);
        REQUIRE(inverse[at(i, j)] == inverse[at(j, i)]);
      }
    CHECK(apart <= (sizeof(TestType) == 4 ? 2e-4 : 1e-11));
  }
}

TEMPLATE_TEST_CASE("A matrix that is not positive, or not finite, has no such inverse", "[ops]", float, double) {
  for (const long n : {5L, 150L})
    for (const TestType bad : {TestType(-1), std::numeric_limits<TestType>::quiet_NaN()}) {
      std::vector<TestType> a(static_cast<std::size_t>(n * n), TestType(0));
      for (long i = 0; i < n; ++i) a[static_cast<std::size_t>(i * n + i)] = i == n - 2 ? bad : TestType(1);
      ops::cpu::LapackWork<TestType> work;
      CHECK_FALSE(ops::invert_symmetric(n, a.data(), work));
    }
}

#if SKEIN_WITH_LAPACK
TEST_CASE("eigenvalues of a matrix whose scratch memory LAPACK cannot count are refused before it is touched", "[ops]") {
  ops::cpu::LapackWork<float> work;
  CHECK_THROWS_WITH(ops::cpu::eigen_symmetric<float>(32'767, nullptr, nullptr, work),
                    Catch::Contains("of 32767 rows") && Catch::Contains("KfacInverse::cholesky"));
}
#endif
