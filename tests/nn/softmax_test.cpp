// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax: back ends against each other, finite differences, laws.
#include <catch2/catch.hpp>

#include <cmath>

#include <skein/nn/check.hpp>
#include <skein/nn/conv_transpose2d.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/log_softmax.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/nll.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/softmax.hpp>
#include <skein/nn/tanh.hpp>

#include "../support/close.hpp"
#include "../support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::LayerHarness;

static_assert((sk::assert_layer<nn::Softmax, sk::Shape<10>>(), true));
static_assert(nn::output_kind_of<nn::Sequential<nn::Identity, nn::Sequential<nn::Softmax>>>() == nn::OutputKind::probabilities);
static_assert(nn::output_kind_of<nn::Sequential<nn::Softmax, nn::Sequential<nn::Identity, nn::Dropout<>>>>() ==
              nn::OutputKind::probabilities);
static_assert(nn::output_kind_of<nn::Sequential<nn::Softmax, nn::Tanh>>() == nn::OutputKind::any);
static_assert(nn::output_kind_of<nn::Sequential<nn::Dropout<>, nn::Identity>>() == nn::OutputKind::any);
static_assert(!nn::fits_loss<nn::Relu, nn::CrossEntropy>() && !nn::fits_loss<nn::Relu, nn::Nll>());
static_assert(nn::fits_loss<nn::Relu, nn::Mse>() && nn::fits_loss<nn::Sequential<nn::Relu, nn::Linear<3>>, nn::CrossEntropy>());
static_assert(!nn::fits_loss<nn::Linear<3>, nn::Nll>() && nn::fits_loss<nn::LogSoftmax, nn::Nll>());
static_assert(!nn::fits_loss<nn::EachPosition<nn::Linear<3>>, nn::Nll>() &&
              !nn::fits_loss<nn::ConvTranspose2d<3, sk::Kernel<2>>, nn::Nll>());
static_assert(nn::fits_loss<nn::EachPosition<nn::Linear<3>>, nn::CrossEntropy>());
static_assert(nn::fits_loss<nn::Linear<3>, nn::CrossEntropy>() && nn::fits_loss<nn::Tanh, nn::Nll>());
static_assert(!nn::fits_loss<nn::Softmax, nn::CrossEntropy>() && nn::fits_loss<nn::LogSoftmax, nn::CrossEntropy>());
static_assert(nn::LogSoftmax::describe({3, {4, 5, 6}}).output == sk::Extents{3, {4, 5, 6}});
static_assert(nn::Softmax::describe({1, {10}}).saves_output && !nn::Softmax::describe({1, {10}}).saves_input);

namespace {

template <class L, bool Log, class In, class S> void twin(long batch, int workers) {
  LayerHarness<L, In, S> h(batch, workers);
  h.set_x([](long b, long i) { return 5 * support::wave(b * 31 + i, 0.7); });
  h.forward();
  h.backward();
  support::Guarded<S> y(h.y.size()), dx(h.y.size());
  const long n = In::extents.last(), pitch = In::extents.flat() ? sk::row_pitch(n) : n, rows = batch * (In::count / n);
  sk::ops::reference::row_softmax<Log>(rows, n, pitch, h.x.data(), y.data());
  sk::ops::reference::row_softmax_backward<Log>(rows, n, pitch, y.data(), h.dy.data(), dx.data());
  long wrong = 0;
  for (long r = 0; r < rows; ++r)
    for (long i = 0; i < n; ++i) {
      wrong += !support::close(h.y[r * pitch + i], y[r * pitch + i], support::Roundings::function, Log ? 10 : 0.1);
      wrong += !support::close(h.dx[r * pitch + i], dx[r * pitch + i], support::Roundings::sum, 1);
    }
  INFO("batch " << batch << " workers " << workers << " of " << n);
  CHECK(wrong == 0);
  CHECK(h.intact());
}
template <class L, bool Log> void twins() {
  for (long batch : {0L, 1L, 5L, 128L}) {
    twin<L, Log, sk::Shape<10>, float>(batch, 1);
    twin<L, Log, sk::Shape<1>, float>(batch, 1);
    twin<L, Log, sk::Shape<17>, double>(batch, 1);
  }
  twin<L, Log, sk::Shape<512>, float>(5, 2);
  twin<L, Log, sk::Shape<2, 2, 7>, float>(5, 2);
}

}  // namespace

TEST_CASE("Softmax: vectors agree with plain loops", "[softmax]") { twins<nn::Softmax, false>(); }
TEST_CASE("LogSoftmax: vectors agree with plain loops", "[softmax]") { twins<nn::LogSoftmax, true>(); }

TEMPLATE_TEST_CASE("softmax: gradients are those of finite differences", "[softmax]", nn::Softmax, nn::LogSoftmax) {
  LayerHarness<TestType, sk::Shape<10>> flat(3);
  flat.check_gradients();
  LayerHarness<TestType, sk::Shape<2, 2, 5>> image(2, 2);
  image.check_gradients();
}

TEST_CASE("softmax: rows sum to one, a shift changes nothing, nothing overflows", "[softmax]") {
  LayerHarness<nn::Softmax, sk::Shape<17>> a(4), b(4);
  LayerHarness<nn::LogSoftmax, sk::Shape<17>> log(4);
  b.set_x([&](long r, long i) { return a.x_at(r, i) + 1000; });
  a.forward();
  b.forward();
  log.forward();
  for (long r = 0; r < 4; ++r) {
    double sum = 0;
    for (long i = 0; i < 17; ++i) {
      sum += a.y_at(r, i);
      CHECK(a.y_at(r, i) == Approx(b.y_at(r, i)).epsilon(1e-11));
      CHECK(std::exp(log.y_at(r, i)) == Approx(a.y_at(r, i)).epsilon(1e-13));
    }
    CHECK(sum == Approx(1).epsilon(1e-14));
  }
}
