// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;

TEST_CASE("zeros, ones, full, eye, diag, arange and linspace") {
  CHECK(list(sk::zeros<float>(2, 2)) == std::vector<float>(4));
  CHECK(list(sk::ones<double>(sk::Cpu{}, 3)) == std::vector<double>{1, 1, 1});
  CHECK(list(sk::full(sk::dims(2, 1), 7)) == std::vector<int>{7, 7});
  CHECK(list(sk::eye<float>(2)) == std::vector<float>{1, 0, 0, 1});
  CHECK(list(sk::diag({1.f, 2.f})) == std::vector<float>{1, 0, 0, 2});
  const sk::Tensor<float, 1> v{3, 4};
  CHECK(list(sk::diag(v * 2)) == std::vector<float>{6, 0, 0, 8});
  CHECK(list(sk::arange(4)) == std::vector<int>{0, 1, 2, 3});
  CHECK(list(sk::arange(1.f, 2.f, 0.25f)) == std::vector<float>{1, 1.25, 1.5, 1.75});
  CHECK(list(sk::arange(0.f, 0.3f, 0.1f)) == std::vector<float>{0, 0.1f, 0.2f});  // 3 * 0.1f is 0.3f, the end
  CHECK(sk::arange(0.f, -1.2f, -0.4f).size() == 3);
  CHECK(sk::arange(1., 1.3, 0.1).size() == 3);
  CHECK(list(sk::arange(5, 0, -2)) == std::vector<int>{5, 3, 1});
  CHECK(sk::arange(3, 3).size() == 0);
  CHECK(list(sk::linspace(0.f, 1.f, 5)) == std::vector<float>{0, 0.25, 0.5, 0.75, 1});
  CHECK(sk::linspace(0.f, 0.3f, 4)(3) == 0.3f);
  CHECK(list(sk::linspace(-3e38f, 3e38f, 3)) == std::vector<float>{-3e38f, 0, 3e38f});
  CHECK(text_of([] { sk::arange(0, 4, 0); }) == "arange: the step is 0");
  CHECK(text_of([] { sk::linspace(0., 1., 1); }) == "linspace: 1 values: it takes at least the two ends");
}

TEST_CASE("arange counts whole numbers exactly, also where a double does not hold them") {
  CHECK(list(sk::arange(9007199254740993L, 9007199254740995L)) == std::vector<long>{9007199254740993L, 9007199254740994L});
  CHECK(list(sk::arange(4611686018427387904L, 4611686018427387907L, 2L)) ==
        std::vector<long>{4611686018427387904L, 4611686018427387906L});
  const int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  CHECK(list(sk::arange(least, most, 2'000'000'000)) == std::vector<int>{least, least + 2'000'000'000, 1'852'516'352});
  CHECK(list(sk::arange(most, least, least)) == std::vector<int>{most, -1});
  CHECK(list(sk::arange(5u, 9u, 3u)) == std::vector<unsigned>{5, 8});
  CHECK(sk::arange(5u, 0u).size() == 0);
  CHECK(sk::arange(0.f, -HUGE_VALF).size() == 0);
  CHECK(
      text_of([] { sk::arange(0.0, HUGE_VAL); }) ==
      "arange: from 0 to inf by 1 is no number of values that a tensor has: all three are finite, and the step is not too small");
  CHECK_THROWS_AS(sk::arange(0.0, static_cast<double>(NAN)), sk::ArgumentError);
  CHECK_THROWS_AS(sk::arange(std::numeric_limits<long>::min(), std::numeric_limits<long>::max()), sk::ShapeError);
}

TEST_CASE("random fills depend on seed, stream and logical index only") {
  const sk::Tensor a = sk::uniform<float>(sk::Seed{5}, sk::dims(11, 13), -1, 3);
  sk::Tensor<float, 2> padded(sk::dims(11, 20));
  const auto window = padded(sk::all, sk::range(0, 13));
  sk::fill_uniform(window, sk::Seed{5}, -1.0, 3);  // numbers of any type, as floats
  CHECK(list(window) == list(a));
  CHECK(padded(3, 13) == 0);
  const auto other_order = sk::zeros<float>(13, 11);
  auto transposed = other_order.copy();
  sk::fill_uniform(transposed.view().transpose(), sk::Seed{5}, -1.f, 3.f);
  CHECK(list(transposed.transpose()) == list(a));
  sk::Workers workers(3);
  sk::Tensor<float, 2> parallel(a.shape());
  workers.run([&](sk::Worker& w) { assign(parallel.view(), sk::uniform<float>(sk::Seed{5}, sk::dims(11, 13), -1, 3), w); });
  CHECK(list(parallel) == list(a));
  CHECK(list(sk::uniform<float>(sk::Seed{6}, sk::dims(11, 13), -1, 3)) != list(a));
  CHECK(list(sk::uniform<float>(sk::Seed{5}, sk::dims(11, 13), -1, 3, 1)) != list(a));
  CHECK(min(a) >= -1);
  CHECK(max(a) < 3);
  const sk::Tensor n = sk::normal<double>(sk::Seed{5}, sk::dims(100000), 2, 0.5);
  CHECK(std::abs(mean(n) - 2) < 0.01);
  CHECK(std::abs(mean(square(n - 2)) - 0.25) < 0.01);
  sk::Tensor<double, 1> every_second(sk::dims(200));
  sk::fill_normal(every_second(sk::range(0, 200, 2)), sk::Seed{5}, 2, 0.5f);
  for (long i = 0; i < 100; ++i) CHECK((every_second(2 * i) == n(i) && every_second(2 * i + 1) == 0));
}
