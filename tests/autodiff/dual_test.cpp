// SPDX-License-Identifier: Apache-2.0
// Dual numbers: every operator and function against finite differences, laws, lanes of vectors against scalars.
#include <catch2/catch.hpp>

#include <cmath>

#include <skein/autodiff/dual.hpp>

#include "../support/close.hpp"

namespace sk = skein;
using sk::Dual;

static_assert((Dual<double>(3, 1) * Dual<double>(3, 1)).derivative == 6);
static_assert((1 / Dual<double>(2, 1)).derivative == -0.25);
static_assert((2 * Dual<float>(5, 1) - 1).value == 9 && (2 * Dual<float>(5, 1) - 1).derivative == 2);
static_assert(where(Dual<double>(-1, 1) < 0, 0, Dual<double>(-1, 1)).derivative == 0);
static_assert(max(Dual<double>(3, 1), 4).derivative == 0 && min(Dual<double>(3, 1), 4).derivative == 1);
static_assert(abs(Dual<double>(-3, 1)).derivative == -1 && abs(Dual<double>(0, 1)).derivative == 0);

namespace {

struct Case {
  const char* name;
  double (*f)(double);
  Dual<double> (*dual)(Dual<double>);
  double from, to;
};
#define SKEIN_CASE(expression, from, to)                                           \
  Case {                                                                           \
#expression, [](double x) -> double { using namespace std; return expression; }, \
         [](Dual<double> x) -> Dual<double> { return expression; }, from, to \
  }

const Case cases[] = {SKEIN_CASE(x + 2 * x - 1, -3, 3),
                      SKEIN_CASE(x / (1 + x * x), -3, 3),
                      SKEIN_CASE(-x * 3 / x, 0.5, 3),
                      SKEIN_CASE(exp(x), -3, 3),
                      SKEIN_CASE(expm1(x), -2, 2),
                      SKEIN_CASE(log(x), 0.1, 4),
                      SKEIN_CASE(log1p(x), -0.5, 3),
                      SKEIN_CASE(sqrt(x), 0.1, 4),
                      SKEIN_CASE(sin(x), -4, 4),
                      SKEIN_CASE(cos(x), -4, 4),
                      SKEIN_CASE(atan(x), -4, 4),
                      SKEIN_CASE(sinh(x), -2, 2),
                      SKEIN_CASE(cosh(x), -2, 2),
                      SKEIN_CASE(tanh(x), -3, 3),
                      SKEIN_CASE(erf(x), -3, 3),
                      SKEIN_CASE(pow(x, 2.5), 0.1, 3),
                      SKEIN_CASE(pow(x, 3), -2, 2),
                      SKEIN_CASE(abs(x) * x, -2, 2),
                      SKEIN_CASE(exp(sin(x)) / (x * x + 1), -3, 3)};

}  // namespace

TEST_CASE("Dual: derivatives are those of finite differences", "[dual]") {
  for (const Case& c : cases)
    for (int i = 0; i <= 20; ++i) {
      const double x = c.from + (c.to - c.from) * (i + 0.37) / 21, e = 1e-5;
      const Dual<double> y = c.dual({x, 1});
      INFO(c.name << " at " << x);
      CHECK(support::close(y.value, c.f(x), support::Roundings::function, 1));
      CHECK(y.derivative == Approx((c.f(x + e) - c.f(x - e)) / (2 * e)).epsilon(1e-8).margin(1e-8));
      CHECK(c.dual({x, 0}).derivative == 0);
      CHECK(c.dual({x, 3}).derivative == Approx(3 * y.derivative).epsilon(1e-14).margin(1e-14));  // one is exactly 0
    }
}

TEST_CASE("Dual: assignments do what the operators do", "[dual]") {
  Dual<double> a{2, 1};
  const Dual<double> b{3, -1};
  Dual<double> c = a;
  c += b;
  c *= a;
  c -= 1;
  c /= b;
  const Dual<double> d = ((a + b) * a - 1) / b;
  CHECK(c.value == d.value);
  CHECK(c.derivative == d.derivative);
  CHECK(square(a).derivative == (a * a).derivative);
  CHECK((maximum(a, b).value == max(a, b).value && minimum(a, b).derivative == min(a, b).derivative));
  CHECK(pow(a, b).value == Approx(8));
  CHECK(pow(a, b).derivative == Approx(8 * (3.0 / 2 - std::log(2.0))));
}

TEST_CASE("Dual: powers at 0 are those of numbers; not-a-number differs from itself", "[dual]") {
  CHECK(pow(Dual<float>(0, 1), 0.5f).value == 0);
  CHECK(pow(Dual<float>(0, 1), 0).value == 1);
  CHECK(pow(Dual<float>(0, 1), 0).derivative == 0);
  CHECK(pow(Dual<float>(0, 1), 1).derivative == 1);
#if SKEIN_WITH_XSIMD
  using V = xsimd::batch<float>;
  CHECK(xsimd::all(pow(Dual<V>(V(0.0f), V(1.0f)), 1).derivative == V(1.0f)));
  const Dual<V> none(V(std::numeric_limits<float>::quiet_NaN()), V(1.0f));
  CHECK(xsimd::all((none != none).mask));
#endif
}

TEST_CASE("Dual: sigmoid has a derivative where its exponential overflows", "[dual]") {
  for (const float x : {-200.f, -90.f, -3.f, 0.f, 3.f, 90.f, 200.f}) {
    const double s = 1 / (1 + std::exp(-static_cast<double>(x)));
    const Dual<float> y = sigmoid(Dual<float>(x, 2)), swish = Dual<float>(x, 1) * sigmoid(Dual<float>(x, 1));
    INFO(x);
    CHECK(static_cast<double>(y.value) == Approx(s).margin(1e-37).epsilon(1e-6));
    CHECK(static_cast<double>(y.derivative) == Approx(2 * s * (1 - s)).margin(1e-37).epsilon(1e-6));
    CHECK(static_cast<double>(swish.derivative) == Approx(s + static_cast<double>(x) * s * (1 - s)).margin(1e-35).epsilon(1e-6));
  }
#if SKEIN_WITH_XSIMD
  using V = xsimd::batch<float>;
  CHECK(xsimd::all(sigmoid(Dual<V>(V(-200.0f), V(1.0f))).derivative == V(0.0f)));
  CHECK(xsimd::all(sigmoid(Dual<V>(V(0.0f), V(1.0f))).derivative == V(0.25f)));
#endif
}

TEST_CASE("Dual: the larger and the smaller of two values are not a number where either is none, as in NumPy", "[dual]") {
  const Dual<float> none(std::numeric_limits<float>::quiet_NaN(), 1);
  for (const Dual<float>& y : {max(0, none), max(none, 0), min(0, none), min(none, 0), abs(none)}) CHECK(std::isnan(y.value));
  CHECK(max(Dual<float>(2, 1), Dual<float>(2, 5)).derivative == 1);  // of equals the first
  CHECK(std::signbit(abs(Dual<float>(-0.0f, 1)).value) == false);
#if SKEIN_WITH_XSIMD
  using V = xsimd::batch<float>;
  const Dual<V> lanes(V(none.value), V(1.0f));
  for (const Dual<V>& y : {max(Dual<V>(0), lanes), min(Dual<V>(0), lanes), max(lanes, Dual<V>(0))})
    CHECK(xsimd::all(!(y.value == y.value)));
  CHECK(xsimd::all(abs(Dual<V>(V(0.0f), V(1.0f))).derivative == V(0.0f)));
  CHECK(xsimd::all(max(Dual<V>(V(2.0f), V(1.0f)), Dual<V>(3)).value == V(3.0f)));
#endif
}

#if SKEIN_WITH_XSIMD
TEST_CASE("Dual: each lane of a vector is a scalar", "[dual]") {
  using V = xsimd::batch<float>;
  const auto f = [](auto x) { return where(x < 0, exp(x) - 1, tanh(x) + 0.5 * log1p(x * x)) * erf(x) / (2 + cos(x)); };
  alignas(64) float x[V::size], value[V::size], derivative[V::size];
  for (std::size_t i = 0; i < V::size; ++i) x[i] = 0.37f * (static_cast<float>(i) - static_cast<float>(V::size) / 2 + 0.2f);
  const Dual<V> y = f(Dual<V>(V::load_aligned(x), V(1.0f)));
  y.value.store_aligned(value);
  y.derivative.store_aligned(derivative);
  for (std::size_t i = 0; i < V::size; ++i) {
    const Dual<double> want = f(Dual<double>(static_cast<double>(x[i]), 1));
    INFO("lane " << i);
    CHECK(static_cast<double>(value[i]) == Approx(want.value).epsilon(2e-6).margin(1e-6));
    CHECK(static_cast<double>(derivative[i]) == Approx(want.derivative).epsilon(4e-6).margin(1e-6));
  }
}
#endif
