// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/nn/dropout.hpp>

#include "support/layer_harness.hpp"

using skein::Rate;
using skein::Shape;
using skein::nn::Dropout;
using support::LayerHarness;

namespace {
template <class Harness> long dropped(Harness& h) {
  long n = 0;
  for (long b = 0; b < h.batch; ++b)
    for (long i = 0; i < Harness::out_count; ++i) n += h.y_at(b, i) == 0;
  return n;
}
}  // namespace

TEST_CASE("Dropout sets its share to zero and scales the rest", "[nn]") {
  LayerHarness<Dropout<Rate<1, 4>>, Shape<12, 12, 7>, float> h(20);
  h.context.key = 5;
  h.set_x([](long, long) { return 3.0; });
  h.forward();
  const double n = 20 * 12 * 12 * 7, share = static_cast<double>(dropped(h)) / n;
  CHECK(std::abs(share - 0.25) < 5 * std::sqrt(0.25 * 0.75 / n));
  for (long i = 0; i < 100; ++i) CHECK((h.y_at(3, i) == 0.0f || h.y_at(3, i) == 4.0f));
  CHECK(h.intact());
}

TEST_CASE("Dropout's mask depends on the step's key, the global sample and the layer, not on workers or ranks", "[nn]") {
  LayerHarness<Dropout<>, Shape<37>> one(6), three(6, 3), later(6), rank(3);
  for (auto* h : {&one, &three, &later, &rank}) h->context.key = 1;
  later.context.key = 2;
  rank.context.global_first = 3;  // a second rank that has samples 3 to 5
  rank.set_x([](long b, long i) { return support::wave((b + 3) * 131 + i, 0.7, 0.3); });
  for (auto* h : {&one, &three, &later, &rank}) h->forward();
  long apart = 0;
  for (long b = 0; b < 6; ++b)
    for (long i = 0; i < 37; ++i) {
      CHECK(three.y_at(b, i) == one.y_at(b, i));
      if (b >= 3) CHECK(rank.y_at(b - 3, i) == one.y_at(b, i));
      apart += (later.y_at(b, i) == 0) != (one.y_at(b, i) == 0);
    }
  CHECK(apart > 60);  // of 222, another step's mask
  CHECK(dropped(one) > 70);
  std::vector<double> x(37, 1), a(37), b(37);
  for (const int ordinal : {3, 4}) {  // another layer's mask
    auto context = one.context;
    skein::nn::Frame<double, skein::Cpu> f;
    f.x = x.data();
    f.y = ordinal == 3 ? a.data() : b.data();
    std::vector<double> padded(48);
    f.y = padded.data();
    std::vector<double> from(48, 1.0);
    f.x = from.data();
    f.batch = 1;
    f.ordinal = ordinal;
    f.context = &context;
    Dropout<>::forward<Shape<37>>(f);
    (ordinal == 3 ? a : b).assign(padded.begin(), padded.begin() + 37);
  }
  CHECK(a != b);
}

TEST_CASE("Dropout's backward lets through what forward let through", "[nn]") {
  LayerHarness<Dropout<Rate<1, 3>>, Shape<5, 5, 3>> h(4, 2);
  h.context.key = 9;
  h.forward();
  h.backward();
  for (long b = 0; b < 4; ++b)
    for (long i = 0; i < 75; ++i) CHECK(h.dx_at(b, i) == Approx(h.y_at(b, i) == 0 ? 0.0 : 1.5 * h.dy_at(b, i)));
  h.check_gradients();
}

TEST_CASE("Dropout is the identity in evaluation and at rate 0, and nothing at rate 1", "[nn]") {
  LayerHarness<Dropout<>, Shape<20>> h(3);
  h.context.phase = skein::nn::Phase::evaluation;
  h.forward();
  h.backward();
  LayerHarness<Dropout<Rate<0, 1>>, Shape<20>> none(3);
  none.forward();
  LayerHarness<Dropout<Rate<1, 1>>, Shape<20>> all(3);
  all.forward();
  for (long b = 0; b < 3; ++b)
    for (long i = 0; i < 20; ++i) {
      CHECK(h.y_at(b, i) == h.x_at(b, i));
      CHECK(h.dx_at(b, i) == h.dy_at(b, i));
      CHECK(none.y_at(b, i) == none.x_at(b, i));
      CHECK(all.y_at(b, i) == 0);
    }
  for (long i = 20; i < 32; ++i) CHECK(h.y_at(1, i) == 0);  // the gap behind a sample
}
