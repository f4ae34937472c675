// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/reduce.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;
using sk::all;
using sk::range;

TEMPLATE_TEST_CASE("reductions along each axis equal plain loops, in any layout", "", float, double) {
  using S = TestType;
  for (long inner : {1L, 3L, 16L, 70L, 200L}) {
    const auto dense = values<S>(sk::dims(5, 7, inner), 1);
    const auto memory = values<S>(sk::dims(inner, 9, 5), 2);
    const auto other = memory(all, range(0, 7)).transpose();  // (5, 7, inner), the first axis is dense
    const auto check = [&](const auto& a) {
      for (int axis = 0; axis < 3; ++axis) {
        const auto sums = sum(a, axis), means = mean(a, axis), highs = max(a, axis), lows = min(a, axis),
                   squares = norm(a, sk::Norm::l2, axis);
        const auto where_high = argmax(a, axis), where_low = argmin(a, axis - 3);
        const long e[3] = {5, 7, inner};
        const int p = axis == 0 ? 1 : 0, q = axis == 2 ? 1 : 2;
        REQUIRE(sums.shape() == sk::dims(e[p], e[q]));
        for (long i = 0; i < e[p]; ++i)
          for (long j = 0; j < e[q]; ++j) {
            double total = 0, square = 0;
            S high = -100, low = 100;
            long at_high = 0, at_low = 0;
            for (long k = 0; k < e[axis]; ++k) {
              const S x = axis == 0 ? a(k, i, j) : axis == 1 ? a(i, k, j) : a(i, j, k);
              total += x;
              square += static_cast<double>(x) * x;
              if (x > high) high = x, at_high = k;
              if (x < low) low = x, at_low = k;
            }
            REQUIRE(support::close(sums(i, j), static_cast<S>(total), support::Roundings::sum, 10));
            REQUIRE(
                support::close(means(i, j), static_cast<S>(total / static_cast<double>(e[axis])), support::Roundings::sum, 1));
            REQUIRE(support::close(squares(i, j), static_cast<S>(std::sqrt(square)), support::Roundings::sum));
            REQUIRE(highs(i, j) == high);
            REQUIRE(lows(i, j) == low);
            REQUIRE(where_high(i, j) == at_high);
            REQUIRE(where_low(i, j) == at_low);
          }
      }
      double total = 0;
      for (S x : list(a)) total += x;
      CHECK(support::close(sum(a), static_cast<S>(total), support::Roundings::sum, 100));
      const auto flat = list(a);
      CHECK(argmax(a) == std::max_element(flat.begin(), flat.end()) - flat.begin());
      CHECK(max(a) == *std::max_element(flat.begin(), flat.end()));
      CHECK(min(a) == *std::min_element(flat.begin(), flat.end()));
    };
    check(dense.view());
    check(other);
  }
}

TEST_CASE("reductions fuse with what they reduce, and nest in expressions") {
  const sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(sum(a * a - 1) == 85);
  CHECK(mean(a) == 3.5f);
  CHECK(sum(a > 2) == 4);
  static_assert(std::is_same_v<decltype(sum(a > 2)), long>);
  CHECK(list(sum(a > 2, 1)) == std::vector<long>{1, 3});
  const sk::Tensor<float, 2> centred(a - mean(a, 1, sk::keep));
  CHECK(list(centred) == std::vector<float>{-1, 0, 1, -1, 0, 1});
  const sk::Tensor<float, 2> share(a / sum(a, 0));  // the sums are computed first, and owned by the tree
  CHECK(share(1, 0) == 0.8f);
  CHECK(norm(a, sk::Norm::l1) == 21);
  CHECK(norm(-a, sk::Norm::inf) == 6);
  CHECK(support::close(norm(a), std::sqrt(91.f)));
  CHECK(dot(a(0), a(1)) == 32);
  CHECK(sum(sum(sum(a, 0), 0)) == 21);
  CHECK(list(argmax(a, 1, sk::keep)) == std::vector<long>{2, 2});
  CHECK(argmin(sk::Tensor<int, 1>{3, 1, 1}) == 1);  // the first of equals
  CHECK(max(sk::Tensor<int, 1>{-3, -1}) == -1);
  CHECK(mean(sk::Tensor<int, 1>{1, 2}) == 1.5);
}

TEST_CASE("sums of integers are as wide as long, their norms are doubles; a mean divides once") {
  sk::Tensor<std::uint8_t, 2> small(sk::dims(2, 4));
  small = std::uint8_t(100);
  CHECK(sum(small) == 800);
  CHECK(list(sum(small, 1)) == std::vector<long>{400, 400});
  CHECK(sum(sk::Tensor<int, 1>{2'000'000'000, 2'000'000'000}) == 4'000'000'000);
  CHECK(norm(sk::Tensor<int, 1>{3, -4}) == 5);
  CHECK(norm(sk::Tensor<int, 1>{-100'000, 0}) == 100'000);
  CHECK(list(norm(sk::Tensor<int, 2>{{3, 4}, {6, 8}}, sk::Norm::l2, 1)) == std::vector<double>{5, 10});
  CHECK(norm(small, sk::Norm::l1) == 800);
  CHECK(mean(sk::ones<double>(49)) == 1);
  CHECK(mean(sk::ones<int>(49, 1), 0)(0) == 1);
}

TEST_CASE("a float sum does not lose what is small") {
  constexpr long n = 5'000'000;
  sk::Tensor<float, 1> a(sk::dims(n));
  a = 0.1f;
  CHECK(support::close(sum(a), static_cast<float>(n * static_cast<double>(0.1f)), support::Roundings::sum));
  CHECK(support::close(sum(a.reshape(n / 5, 5), 0)(3), static_cast<float>(n / 5 * static_cast<double>(0.1f)),
                       support::Roundings::sum));
}

TEMPLATE_TEST_CASE("Euclidean norms of values whose squares are no numbers of their type", "", float, double) {
  using S = TestType;
  using Limits = std::numeric_limits<S>;
  const S large = Limits::max() / 8, small = Limits::min() / 8, squares = std::sqrt(Limits::min()) / 8;
  const auto same = [](S a, S b) { return support::close(a, b, support::Roundings::sum); };
  for (const S unit : {S(1), large, small, squares})
    for (const long n : {2L, 70L}) {
      sk::Tensor<S, 2> a(sk::dims(3, n));  // rows of (3, 4), zeros, (4, 3)
      a(0, 0) = a(2, 1) = 3 * unit, a(0, 1) = a(2, 0) = 4 * unit;
      CHECK(same(norm(a(0)), 5 * unit));
      CHECK(same(norm(a), std::sqrt(S(50)) * unit));
      CHECK((norm(a(1)) == 0 && same(norm(a(0), sk::Norm::l2, 0).item(), 5 * unit)));
      const sk::Tensor<S, 1> rows = norm(a, sk::Norm::l2, 1), columns = norm(a, sk::Norm::l2, 0);
      CHECK((same(rows(0), 5 * unit) && rows(1) == 0 && same(rows(2), 5 * unit)));
      CHECK((same(columns(0), 5 * unit) && same(columns(1), 5 * unit) && (n == 2 || columns(2) == 0)));
    }
  const S none = Limits::quiet_NaN(), infinite = Limits::infinity();
  const sk::Tensor<S, 2> a{{infinite, 1}, {none, 0}, {large, 0}};
  const sk::Tensor<S, 1> rows = norm(a, sk::Norm::l2, -1);
  CHECK((rows(0) == infinite && std::isnan(rows(1)) && same(rows(2), large)));
  CHECK((norm(a(0)) == infinite && std::isnan(norm(a(1))) && std::isnan(norm(a))));
  CHECK(norm(sk::Tensor<S, 1>(sk::dims(0))) == 0);
  CHECK(norm(sk::Tensor<S, 2>(sk::dims(2, 0)), sk::Norm::l2, 1)(1) == 0);
}

TEMPLATE_TEST_CASE("extremes pass over NaNs, wherever they stand", "", float, double) {
  using S = TestType;
  const S none = std::numeric_limits<S>::quiet_NaN();
  for (long n : {1L, 3L, 20L, 300L})
    for (long at : {0L, 1L, n - 1}) {
      if (at >= n || n < 2) continue;
      sk::Tensor<S, 2> a(sk::dims(n, 3));
      a = sk::arange(S(3 * n)).reshape(n, 3);
      a(at, 0) = none;
      const sk::Tensor<S, 2> turned = a.transpose();
      const S high = static_cast<S>(3 * (n - 1 - (at == n - 1))), low = at == 0 ? S(3) : S(0);
      CHECK(max(a(all, 0)) == high);
      CHECK(min(turned(0)) == low);
      CHECK(max(a, 0)(0) == high);
      CHECK(min(turned, 1)(0) == low);
      CHECK(argmax(a(all, 0)) == n - 1 - (at == n - 1));
      CHECK(argmin(turned, 1)(0) == (at == 0));
      CHECK(argmin(a, 0)(0) == (at == 0));
    }
  CHECK(argmax(sk::Tensor<S, 1>{none, none}) == 0);
}

TEMPLATE_TEST_CASE("a norm of what is not a number is none, wherever it stands", "", float, double) {
  using S = TestType;
  for (const long n : {1L, 3L, 40L, 130L})
    for (const long at : {0L, n / 2, n - 1}) {
      sk::Tensor<S, 2> a = sk::ones<S>(n, 3);
      a(at, 1) = std::numeric_limits<S>::quiet_NaN();
      for (const sk::Norm which : {sk::Norm::l1, sk::Norm::l2, sk::Norm::inf}) {
        CHECK(std::isnan(norm(a, which)));
        const sk::Tensor<S, 1> columns = norm(a, which, 0), rows = norm(a, which, 1);
        CHECK((std::isnan(columns(1)) && !std::isnan(columns(0)) && !std::isnan(columns(2))));
        CHECK(std::isnan(rows(at)));
        CHECK(sum(rows != rows) == 1);
      }
    }
}

TEST_CASE("nothing sums to zero, and has no largest value") {
  const sk::Tensor<float, 2> none(sk::dims(0, 3));
  CHECK(sum(none) == 0);
  CHECK(list(sum(none, 0)) == std::vector<float>{0, 0, 0});
  CHECK(sum(none, 1).shape() == sk::dims(0));
  CHECK(text_of([&] { max(none); }) == "max: the tensor has no values");
  CHECK(text_of([&] { mean(none); }) == "mean: the tensor has no values");
  CHECK(text_of([&] { argmin(none, 0); }) == "argmin: the tensor has no values");
  CHECK(text_of([&] { mean(none, 0); }) == "mean: the tensor has no values");
  CHECK(mean(none, 1).shape() == sk::dims(0));
}

TEST_CASE("axes and lengths that do not fit say so") {
  const sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(text_of([&] { sum(a, 2); }) == "sum: axis 2 of a tensor of rank 2: axes go from -2 to 1");
  CHECK(text_of([&] { dot(a(0), sk::Tensor<float, 1>{1}); }) ==
        "dot: shapes (3) and (1) differ: both vectors must have one length");
}

TEST_CASE("means and products of whole numbers do not wrap") {
  const long most = std::numeric_limits<long>::max();
  CHECK(mean(sk::Tensor<long, 1>{most, most}) == Approx(static_cast<double>(most)));
  CHECK(mean(sk::Tensor<std::uint64_t, 1>{std::uint64_t{1} << 63}) == 9223372036854775808.0);
  const sk::Tensor<long, 2> times{{most, most - 2}, {most, most}};
  CHECK(list(mean(times, 1))[1] == Approx(static_cast<double>(most)));
  CHECK(dot(sk::Tensor<int, 1>{100000, 1}, sk::Tensor<int, 1>{100000, 1}) == 10'000'000'001);
  CHECK(dot(sk::Tensor<std::uint16_t, 1>{65535}, sk::Tensor<std::uint16_t, 1>{65535}) == 4294836225);
}
