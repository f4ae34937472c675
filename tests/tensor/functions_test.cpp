// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/functions.hpp>
#include <skein/tensor/reduce.hpp>

#include <cmath>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;
using support::close;
using sk::range;
using support::Roundings;

namespace {
// An expression against a plain loop, over lengths that end within a vector and rows with gaps. `terms` is the magnitude of the
// terms that may cancel: compilers differ in which products and sums they contract.
template <class S, class Fused, class Plain>
void compare(const char* name, double low, double high, Roundings c, double terms, Fused fused, Plain plain) {
  for (long n : {1L, 3L, 7L, 16L, 33L, 130L}) {
    const auto a = values<S>(sk::dims(n), 1, low, high), b = values<S>(sk::dims(n), 2, low, high);
    const sk::Tensor<S, 1> r(fused(a, b));
    const auto wide = values<S>(sk::dims(3, n + 5), 3, low, high);
    const sk::Tensor<S, 2> rows(fused(wide(sk::all, sk::range(0, n)), b));
    for (long i = 0; i < n; ++i) {
      INFO(name << " of " << a(i) << ", " << b(i) << ": " << r(i) << " against " << plain(a(i), b(i)));
      CHECK(close(r(i), static_cast<S>(plain(a(i), b(i))), c, terms));
      for (long k = 0; k < 3; ++k) CHECK(close(rows(k, i), static_cast<S>(plain(wide(k, i), b(i))), c, terms));
    }
  }
}
}  // namespace

#define COMPARE_SUM(low, high, roundings, terms, expression, loop) \
  compare<TestType>(                                               \
      #expression, low, high, Roundings::roundings, terms,         \
      [](const auto& a, const auto& b) {                           \
        static_cast<void>(b);                                      \
        return expression;                                         \
      },                                                           \
      [](TestType x, TestType y) {                                 \
        static_cast<void>(x), static_cast<void>(y);                \
        return loop;                                               \
      })
#define COMPARE(low, high, roundings, expression, loop) COMPARE_SUM(low, high, roundings, 1e-3, expression, loop)

TEMPLATE_TEST_CASE("every operator and function equals a plain loop", "", float, double) {
  COMPARE(-2, 2, arithmetic, a + b, x + y);
  COMPARE(-2, 2, arithmetic, a - b, x - y);
  COMPARE(-2, 2, arithmetic, a * b, x * y);
  COMPARE(0.5, 2, arithmetic, a / b, x / y);
  COMPARE(-2, 2, exact, -a, -x);
  COMPARE_SUM(-2, 2, arithmetic, 6, 2 - a * 3 + 0.5, 2 - x * 3 + TestType(0.5));
  COMPARE(-2, 2, exact, minimum(a, b), std::min(x, y));
  COMPARE(-2, 2, exact, maximum(a, 0.25), std::max(x, TestType(0.25)));
  COMPARE(-2, 2, exact, abs(a), std::abs(x));
  COMPARE(-5, 5, function, exp(a), std::exp(x));
  COMPARE(-1, 1, function, expm1(a), std::expm1(x));
  COMPARE(0.1, 9, function, log(a), std::log(x));
  COMPARE(-0.5, 3, function, log1p(a), std::log1p(x));
  COMPARE(0, 9, arithmetic, sqrt(a), std::sqrt(x));
  COMPARE(-2, 2, arithmetic, square(a), x * x);
  COMPARE(-3, 3, function, sin(a), std::sin(x));
  COMPARE(-3, 3, function, cos(a), std::cos(x));
  COMPARE(-3, 3, function, tanh(a), std::tanh(x));
  COMPARE(-3, 3, sum, erf(a), std::erf(x));  // xsimd's is within 34 roundings
  COMPARE(-9, 9, function, sigmoid(a), 1 / (1 + std::exp(-x)));
  COMPARE(0.1, 3, function, pow(a, b), std::pow(x, y));
  COMPARE(-3, 3, exact, floor(a), std::floor(x));
  COMPARE(-3, 3, exact, ceil(a), std::ceil(x));
  COMPARE(-2, 2, exact, relu(a), x > 0 ? x : 0);
  COMPARE(-2, 2, exact, sign(a), TestType((x > 0) - (x < 0)));
  COMPARE(-2, 2, exact, where(a > b, a, b), std::max(x, y));
  COMPARE(-2, 2, exact, where(a <= 0 || b >= 1, 1.f, a), (x <= 0 || y >= 1 ? 1 : x));
  COMPARE(-2, 2, exact, where(a < 0 && b != 0, a, -1), (x < 0 && y != 0 ? x : -1));
  COMPARE(-2, 2, exact, where(!(a == a), a, b), y);
  COMPARE(-2, 2, exact, sk::cast<TestType>(a > b) * 2, TestType(x > y ? 2 : 0));
  COMPARE_SUM(-2, 2, arithmetic, 4, relu(a * b + b) / (abs(a) + 1), std::max(TestType(0), x * y + y) / (std::abs(x) + 1));
}

TEST_CASE("a value does not depend on its place in a row") {
  const auto a = values<float>(sk::dims(67), 4, -4, 4);
  const sk::Tensor<float, 1> whole(tanh(a) * exp(a));
  for (long begin : {1L, 5L, 17L, 50L}) {
    const sk::Tensor<float, 1> part(tanh(a(sk::range(begin))) * exp(a(sk::range(begin))));
    CHECK(std::equal(part.begin(), part.end(), whole.begin() + begin));
  }
  const sk::Tensor<float, 1> strided(exp(a(sk::range(0, 67, 3))));
  const sk::Tensor<float, 1> dense(exp(a));
  for (long i = 0; i < strided.size(); ++i) CHECK(strided(i) == dense(3 * i));
}

TEMPLATE_TEST_CASE("not-a-number differs from itself, and powers are those of plain loops at the ends too", "", float, double) {
  using S = TestType;
  const S none = std::numeric_limits<S>::quiet_NaN(), most = std::numeric_limits<S>::infinity();
  const sk::Tensor<S, 1> a{none, 1, 0, most, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, none};
  const sk::Tensor<S, 1> cleared(where(a != a, S(0), S(1)));
  CHECK(cleared(0) == 0);
  CHECK(sum(cleared) == 15);
  for (const S p : {S(0), S(1), S(3), S(-1), S(0.5)}) {
    const sk::Tensor<S, 1> powers(pow(a, p));
    for (long i = 1; i < 16; ++i) CHECK(powers(i) == std::pow(a(i), p));
  }
}

TEST_CASE("logarithms of denormals, the error function of large numbers, and minus 0 are those of plain loops") {
  const double least = std::numeric_limits<double>::denorm_min(), most = std::numeric_limits<double>::max();
  sk::Tensor<double, 1> a(sk::dims(20));
  a = sk::arange(20.0) + 1;
  a(range(0, 6)) = sk::Tensor<double, 1>{least, 100 * least, 1e-310, 0, -1, 1e-300};
  a(range(6, 10)) = sk::Tensor<double, 1>{most, -most, 1e60, -1e60};
  const sk::Tensor<double, 1> logarithms = log(a), errors = erf(a), opposite = -a;
  for (long i = 0; i < a.size(); ++i) {
    INFO(a(i));
    CHECK(close(logarithms(i), std::log(a(i)), Roundings::function));
    CHECK(close(errors(i), std::erf(a(i)), Roundings::sum));
    CHECK((opposite(i) == -a(i) && std::signbit(opposite(i)) == std::signbit(-a(i))));
  }
  CHECK(std::isnan(sk::eval(erf(sk::Tensor<double, 1>{NAN}))(0)));
}

TEST_CASE("not-a-number goes through relu, sign, maximum and minimum, on whichever side it stands") {
  sk::Tensor<float, 1> a{NAN, -1, 2}, r = relu(a), s = sign(a);
  CHECK(std::isnan(r(0)));
  CHECK(std::isnan(s(0)));
  CHECK(r(1) == 0);
  for (const sk::Tensor<float, 1>& m :
       {sk::eval(maximum(a, 0)), sk::eval(maximum(0, a)), sk::eval(minimum(a, 0)), sk::eval(minimum(0, a))}) {
    CHECK(std::isnan(m(0)));
    CHECK((m(1) == 0 || m(1) == -1));
  }
  CHECK(list(maximum(0, a(sk::range(1)))) == std::vector<float>{0, 2});
  CHECK(list(minimum(0, a(sk::range(1)))) == std::vector<float>{-1, 0});
}

TEST_CASE("a number that a tensor of whole numbers cannot hold is not made another one") {
  const sk::Tensor<int, 1> a{1, 2, 3};
  const sk::Tensor<std::uint8_t, 1> small{1, 200, 255};
  CHECK(text_of([&] { a * 0.5; }) ==
        "elementwise operation: the number 0.5 stands beside a tensor of whole numbers whose type cannot hold it: convert the "
        "tensor with cast<Scalar>() first");
  CHECK(text_of([&] { small < 300; }).find("the number 300 stands") != std::string::npos);  // and not 300 - 256
  for (const double x : {-1.0, 256.0, 1e300, 0.25}) CHECK_THROWS_AS(small == x, sk::ArgumentError);
  CHECK_THROWS_AS(small > -1, sk::ArgumentError);
  CHECK_THROWS_AS(a + 3'000'000'000u, sk::ArgumentError);
  CHECK_THROWS_AS(a + 2147483648.0, sk::ArgumentError);
  CHECK_THROWS_AS(where(a > 1, a, NAN), sk::ArgumentError);
  CHECK_THROWS_AS((a > 1) * 2, sk::ArgumentError);
  CHECK(list(a * 2.0) == std::vector<int>{2, 4, 6});
  CHECK(list(a + -2147483648.0 < 0) == std::vector<bool>{true, true, true});
  CHECK(list(small >= 200ul) == std::vector<bool>{false, true, true});
  CHECK(list((a > 1) == false) == std::vector<bool>{true, false, false});
  CHECK(list(where(a > 1, a, -1L)) == std::vector<int>{-1, 2, 3});
}

TEST_CASE("powers and quotients of whole numbers are exact, and end no program") {
  const sk::Tensor<long, 1> threes{3, -3};
  CHECK(list(pow(threes, 39)) == std::vector<long>{4052555153018976267, -4052555153018976267});
  const sk::Tensor<int, 1> a{2, 1, -1, 0, -3};
  CHECK(list(pow(a, 0)) == std::vector<int>{1, 1, 1, 1, 1});
  CHECK(list(pow(a, 3)) == std::vector<int>{8, 1, -1, 0, -27});
  CHECK(list(pow(a, 32)) == std::vector<int>{0, 1, 1, 0, -501334399});  // what an int holds of it, as NumPy
  CHECK(list(pow(a, -1)) == std::vector<int>{0, 1, -1, 0, 0});
  const int least = std::numeric_limits<int>::min();
  const sk::Tensor<int, 1> x{7, -7, least, 0}, y{2, 0, -1, 0};
  CHECK(list(x / y) == std::vector<int>{3, 0, least, 0});
  CHECK(list(x / 0) == std::vector<int>{0, 0, 0, 0});
  CHECK(list(7 / y) == std::vector<int>{3, 0, -7, 0});
  const sk::Tensor<std::uint8_t, 1> bytes{200, 3};
  CHECK(list(bytes / 0 + 0) == std::vector<int>{0, 0});
  CHECK(list(pow(bytes, 2)) == std::vector<std::uint8_t>{64, 9});
}

TEST_CASE("integers, masks and casts are computed as in plain loops") {
  const sk::Tensor<int, 1> a{7, -7, 3}, b{2, 2, -4};
  CHECK(list(a / b) == std::vector<int>{3, -3, 0});
  CHECK(list(a * b - 1) == std::vector<int>{13, -15, -13});
  CHECK(list(sk::cast<double>(a) / 2) == std::vector<double>{3.5, -3.5, 1.5});
  const long large = (1L << 53) + 1;  // no double
  CHECK(list(floor(sk::Tensor<long, 1>{large, -large})) == std::vector<long>{large, -large});
  CHECK(list(ceil(sk::Tensor<long, 1>{large, -large})) == std::vector<long>{large, -large});
  CHECK(list(abs(sk::Tensor<unsigned, 1>{3, ~0u})) == std::vector<unsigned>{3, ~0u});
  const sk::Tensor<bool, 1> mask(a > b);
  CHECK(list(mask) == std::vector<bool>{true, false, true});
  const sk::Tensor<float, 1> x{1, 2, 3};
  const sk::Tensor<float, 1> chosen(where(mask, x, 0));
  CHECK(list(chosen) == std::vector<float>{1, 0, 3});
  sk::Tensor<float, 1> ones(sk::dims(3));
  ones = x > 1;  // a mask is ones and zeros
  CHECK(list(ones) == std::vector<float>{0, 1, 1});
}

namespace {
struct Swish {
  template <class T> T operator()(T x) const { return x / (T(1) + std::exp(-x)); }
};
struct Cube {
  using vectorizes = void;
  template <class T> T operator()(const T& x) const { return x * x * x; }
};
}  // namespace

TEST_CASE("function objects of the user run value by value, or by batches where they say so") {
  const auto a = values<float>(sk::dims(37), 5);
  const sk::Tensor<float, 1> swish(sk::map(Swish{}, a)), cube(sk::map(Cube{}, a) + 1);
  for (long i = 0; i < 37; ++i) {
    CHECK(close(swish(i), Swish{}(a(i))));
    CHECK(close(cube(i), a(i) * a(i) * a(i) + 1, Roundings::arithmetic, 1));  // the terms may cancel
  }
}

TEST_CASE("a mask that was made of masks, or stands for a number, is what it is when it was stored before") {
  for (const long n : {3L, 16L, 33L, 64L}) {
    const auto a = values<float>(sk::dims(n), 1, -1, 1), b = values<float>(sk::dims(n), 2, -1, 1),
               c = values<float>(sk::dims(n), 3, -1, 1);
    const sk::Tensor<bool, 1> p(a > 0), q(b > 0), r(c > 0);
    const auto same = [&](const auto& lazy, const auto& stored) {
      CHECK(list(sk::Tensor<float, 1>(where(lazy, a, 10 * b))) == list(sk::Tensor<float, 1>(where(stored, a, 10 * b))));
      CHECK(sum(where(lazy, a, 0.f)) == sum(where(stored, a, 0.f)));
    };
    same(where(a > 0, b > 0, c > 0), where(p, q, r));
    same(minimum(a > 0, b > 0), minimum(p, q));
    same(maximum(a > 0, b > 0), maximum(p, q));
    same((a > 0) < (b > 0), p < q);
    same((a > 0) + (b > 0) == (c > 0) + (b > 0), p + q == r + q);
    same((a > 0) * (b > 0) == (c > 0) - (b > 0), p * q == r - q);
    same((a > 0) == (b > 0), p == q);
    same((a > 0) != !(b > 0), p != !q);
    same((a > 0) && ((b > 0) || (c > 0)), p && (q || r));
    CHECK(list(sk::Tensor<bool, 1>(where(a > 0, b > 0, c > 0))) == list(sk::Tensor<bool, 1>(where(p, q, r))));
  }
}

TEMPLATE_TEST_CASE("exponentials are finite as far as numbers go", "", float, double) {
  const auto largest = std::log(std::numeric_limits<TestType>::max());
  const sk::Tensor<TestType, 1> x{largest * TestType(0.999999), largest - TestType(0.2), TestType(88), TestType(1), TestType(-1),
                                  largest + TestType(1)};
  sk::Tensor<TestType, 1> many(sk::dims(20));
  many(sk::range(0, 6)) = x, many(sk::range(6, 12)) = x, many(sk::range(14, 20)) = x;
  const sk::Tensor<TestType, 1> e(exp(many)), less(expm1(many));
  for (long i = 0; i < many.size(); ++i) {
    INFO(many(i));
    CHECK((e(i) == std::exp(many(i)) || close(e(i), std::exp(many(i)), Roundings::function)));
    CHECK((less(i) == std::expm1(many(i)) || close(less(i), std::expm1(many(i)), Roundings::function)));
  }
}
