// SPDX-License-Identifier: Apache-2.0
#include <skein/ops/sliced_product.hpp>
#include <skein/tensor/create.hpp>

#include <vector>

#include <catch2/catch.hpp>
#include "sparse_cases.hpp"

using namespace tensor_test;

TEMPLATE_TEST_CASE("a sliced pattern times a vector is the pattern times it, with any number of steps", "", float, double) {
  using S = TestType;
  for (const long rows : {0L, 1L, 16L, 37L})
    for (const long columns : {1L, 15L, 16L, 17L, 30L, 31L, 32L, 62L, 3000L, 9000L})
      for (const double share : {0., 0.05, 0.4, 1.}) {
        const auto a = sk::Csr<S>::from_dense(thinned<S>(rows, columns, share, 1)).without_values();
        const auto x = values<S>(sk::dims(columns), 2);
        const auto expected = mv(a, x);
        for (int steps = -1; steps <= sk::SlicedPattern::most_steps; ++steps) {
          const sk::SlicedPattern sliced(a, steps);
          REQUIRE((sliced.rows() == rows && sliced.columns() == columns && sliced.entries() == a.entries()));
          REQUIRE((steps < 0 || sliced.steps() == steps));
          REQUIRE((steps != 0 || sliced.rest().entries == a.entries()));
          REQUIRE(near(mv(sliced, x), expected, 0.2 * static_cast<double>(columns)));
        }
      }
}

TEST_CASE("workers share the slices; what lies behind the vector is not touched") {
  const auto a = sk::Csr<float>::from_dense(thinned<float>(300, 203, 0.1, 1)).without_values().with_index<std::uint16_t>();
  const sk::SlicedPattern sliced(a, 2);
  CHECK(sliced.rest().entries > 0);
  CHECK(sliced.rest().entries < a.entries() / 2);
  const auto x = values<float>(sk::dims(203), 2);
  std::vector<float> exact(x.begin(), x.end());  // a sanitizer sees a load behind it
  const auto expected = mv(a, x);
  for (const int count : {1, 2, 3, 30}) {
    sk::Workers workers(count);
    sk::Tensor<float, 1> y(sk::dims(300));
    workers.run([&](sk::Worker& w) { sk::ops::spmv(sliced, exact.data(), y.data(), w); });
    CHECK(near(y, expected, 20.));
  }
}

TEST_CASE("steps are taken where they pay: in a dense enough pattern, on a processor that has the lookup") {
  const auto dense = sk::Csr<float>::from_dense(thinned<float>(160, 3100, 0.05, 1)).without_values();
  const auto thin = sk::Csr<float>::from_dense(thinned<float>(160, 3100, 0.001, 1)).without_values();
  CHECK((sk::SlicedPattern(dense).steps() >= 2) == sk::SlicedPattern::looks_up);
  CHECK(sk::SlicedPattern(thin).steps() == 0);
}

TEST_CASE("a sliced pattern that was moved from has no rows") {
  const auto a = sk::Csr<float>::from_dense(thinned<float>(40, 70, 0.2, 1)).without_values();
  sk::SlicedPattern first(a, 2), other(sk::Csr<void>::from_triples(20, 3, std::vector<int>{}, std::vector<int>{}), 1);
  const auto x = values<float>(sk::dims(70), 2);
  const sk::SlicedPattern second = std::move(first);
  CHECK((first.rows() == 0 && first.columns() == 0 && first.entries() == 0));
  CHECK(mv(first, sk::zeros<float>(0)).size() == 0);
  first = sk::SlicedPattern(a, 2);
  other = std::move(first);
  CHECK((near(mv(second, x), mv(a, x), 14) && near(mv(other, x), mv(a, x), 14)));
  CHECK(mv(first, sk::zeros<float>(first.columns())).size() == first.rows());
}

TEST_CASE("sliced patterns: what is refused") {
  const auto a = sk::Csr<float>::from_dense(thinned<float>(4, 5, 0.5, 1)).without_values();
  CHECK_THROWS_WITH(sk::SlicedPattern(a, 5), Catch::Contains("SlicedPattern: 5 steps: from 0 to 4"));
  CHECK_THROWS_AS(sk::SlicedPattern(a, -2), sk::ArgumentError);
  CHECK_THROWS_AS(mv(sk::SlicedPattern(a), values<float>(sk::dims(4), 1)), sk::ShapeError);
  sk::Tensor<float, 1> both(sk::dims(5));
  CHECK_THROWS_WITH((sk::mv_into<float>(both(sk::range(0, 4)), sk::SlicedPattern(a), both.view())),
                    Catch::Contains("the target overlaps"));
}
