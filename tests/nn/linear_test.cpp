// SPDX-License-Identifier: Apache-2.0
// Linear: facts, naive twins over sizes that meet every kernel, finite differences, laws.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/nn/check.hpp>
#include <skein/nn/linear.hpp>

#include "../support/close.hpp"
#include "../support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::LayerHarness;

static_assert((sk::assert_layer<nn::Linear<10>, sk::Shape<84>>(), true));
static_assert(nn::Linear<10>::describe({1, {84}}).parameter_count() == 850);
static_assert(nn::Linear<10, sk::NoBias>::describe({1, {84}}).parameter_count() == 840);
static_assert(nn::Linear<10>::describe({1, {84}}).fault == nn::Fault::none);
static_assert(nn::Linear<10>::describe({3, {5, 5, 16}}).fault == nn::Fault::wants_flat);
static_assert(nn::Linear<10>::describe({3, {5, 5, 16}}).output == sk::Extents{1, {10}}, "a fault still returns legal extents");
static_assert(nn::Linear<10>::describe({1, {84}}).parameters[1].init == sk::Init::fan_in_uniform);
static_assert(nn::Linear<10>::describe({1, {84}}).parameters[1].fan_in == 84 &&
              !nn::Linear<10>::describe({1, {84}}).parameters[1].decay);
static_assert(
    nn::Linear<10, sk::WeightInit<sk::Init::zeros>, sk::BiasInit<sk::Init::ones>>::describe({1, {84}}).parameters[0].init ==
    sk::Init::zeros);
static_assert(
    nn::Linear<10, sk::WeightInit<sk::Init::zeros>, sk::BiasInit<sk::Init::ones>>::describe({1, {84}}).parameters[1].init ==
    sk::Init::ones);
static_assert(nn::needs_of<nn::Linear<512>>({1, {512}}).splits_gradients &&
              !nn::needs_of<nn::Linear<80>>({1, {80}}).splits_gradients);

namespace {

template <class S> bool near(S a, double b, double terms) {
  return support::close(a, static_cast<S>(b), support::Roundings::arithmetic, terms);
}

/// Values and gradients against four loops.
template <int In, int Out, class S> void twin(long batch, int workers) {
  LayerHarness<nn::Linear<Out>, sk::Shape<In>, S> h(batch, workers, true);
  h.forward();
  h.backward();
  std::vector<double> dw(static_cast<std::size_t>(In * Out)), db(static_cast<std::size_t>(Out));
  long wrong = 0;
  for (long b = 0; b < batch; ++b) {
    for (long j = 0; j < Out; ++j) {
      double y = static_cast<double>(h.parameter_at(1, j));
      const double d = static_cast<double>(h.dy_at(b, j));
      for (long i = 0; i < In; ++i) {
        y += static_cast<double>(h.x_at(b, i)) * static_cast<double>(h.parameter_at(0, i * Out + j));
        dw[static_cast<std::size_t>(i * Out + j)] += static_cast<double>(h.x_at(b, i)) * d;
      }
      db[static_cast<std::size_t>(j)] += d;
      wrong += !near(h.y_at(b, j), y, In + 1.0);
    }
    for (long i = 0; i < In; ++i) {
      double dx = 0;
      for (long j = 0; j < Out; ++j)
        dx += static_cast<double>(h.dy_at(b, j)) * static_cast<double>(h.parameter_at(0, i * Out + j));
      wrong += !near(h.dx_at(b, i), dx, Out);
    }
  }
  for (long i = 0; i < In * Out; ++i)
    wrong += !near(h.gradient_at(0, i), dw[static_cast<std::size_t>(i)], static_cast<double>(batch));
  for (long j = 0; j < Out; ++j) wrong += !near(h.gradient_at(1, j), db[static_cast<std::size_t>(j)], static_cast<double>(batch));
  INFO("in " << In << " out " << Out << " batch " << batch << " workers " << workers);
  CHECK(wrong == 0);
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}
template <int In, int Out> void twins() {
  for (long batch : {0L, 1L, 5L, 128L}) {
    twin<In, Out, float>(batch, 1);
    twin<In, Out, double>(batch, 1);
  }
  twin<In, Out, float>(13, 3);
}

/// Gradients by finite differences.
template <int In, int Out, class... Options> void differences(int workers = 1) {
  LayerHarness<nn::Linear<Out, Options...>, sk::Shape<In>> h(3, workers, true);
  INFO("in " << In << " out " << Out);
  h.check_gradients(1e-6, 30);
}

}  // namespace

TEST_CASE("Linear: thin layers agree with plain loops", "[linear]") {
  twins<1, 1>();
  twins<3, 3>();
  twins<1, 80>();
  twins<3, 10>();
  twins<7, 1>();
  twins<17, 3>();
  twins<512, 1>();
}
TEST_CASE("Linear: small layers agree with plain loops", "[linear]") {
  twins<7, 8>();
  twins<8, 7>();
  twins<8, 8>();
  twins<10, 16>();
  twins<16, 17>();
  twins<17, 10>();
  twins<80, 40>();
  twins<84, 10>();
  twins<120, 84>();
}
TEST_CASE("Linear: large layers agree with plain loops", "[linear]") {
  twins<512, 120>();
  twin<300, 512, float>(5, 2);  // a gradient that the workers divide
  twin<300, 512, float>(5, 1);
  twin<300, 512, double>(5, 2);
  twin<512, 512, double>(2, 3);
}

TEST_CASE("Linear: gradients are those of finite differences", "[linear]") {
  differences<1, 1>();
  differences<1, 17>();
  differences<3, 4>();
  differences<5, 2>();
  differences<8, 8>();
  differences<17, 7, sk::NoBias>(2);
  differences<84, 10>(2);
  differences<300, 300>(2);
}

TEST_CASE("Linear: without dx the gradients are the same", "[linear]") {
  LayerHarness<nn::Linear<10>, sk::Shape<17>, float> with(5), without(5);
  with.forward();
  with.backward();
  without.forward();
  without.backward(false);
  for (long i = 0; i < 170; ++i) CHECK(with.gradient_at(0, i) == without.gradient_at(0, i));
  CHECK(std::isnan(without.dx_at(0, 0)));
}

TEMPLATE_TEST_CASE("Linear: accumulated gradients add up", "[linear]", nn::Linear<3>, nn::Linear<10>, nn::Linear<512>) {
  LayerHarness<TestType, sk::Shape<130>, double> h(4);
  h.forward();
  h.backward();
  const std::vector<double> once(h.gradients().data(), h.gradients().data() + h.gradients().size());
  h.backward(true, true);
  long wrong = 0;
  for (long i = 0; i < h.gradients().size(); ++i) wrong += !near(h.gradients()[i], 2 * once[static_cast<std::size_t>(i)], 4);
  CHECK(wrong == 0);
}

TEST_CASE("Linear: it is linear", "[linear]") {
  LayerHarness<nn::Linear<84, sk::NoBias>, sk::Shape<17>, double> a(3), b(3), sum(3);
  b.set_x([](long r, long i) { return support::wave(r * 7 + i, 0.2); });
  sum.set_x([&](long r, long i) { return 2 * a.x_at(r, i) - 3 * b.x_at(r, i); });
  a.forward();
  b.forward();
  sum.forward();
  for (long r = 0; r < 3; ++r)
    for (long j = 0; j < 84; ++j) CHECK(near(sum.y_at(r, j), 2 * a.y_at(r, j) - 3 * b.y_at(r, j), 85));
}

TEST_CASE("Linear: the network says what it wants", "[linear]") {
  using sk::check::FirstFault;
  static_assert(std::is_same_v<FirstFault<nn::Linear<10>, sk::Shape<12>>, sk::check::fits>);
  static_assert(!sk::check::gets_a_flat_shape<nn::Linear<10>, sk::Shape<5, 5, 16>>);
  using Frame = nn::Frame<float, sk::Cpu>;
  CHECK(nn::Linear<10>::kernel<sk::Shape<84>, Frame>() != nn::Linear<1>::kernel<sk::Shape<84>, Frame>());
}
