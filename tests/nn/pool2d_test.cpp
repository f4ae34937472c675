// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/avg_pool2d.hpp>
#include <skein/nn/check.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/max_pool2d.hpp>

#include "fixtures/conv.hpp"
#include "support/conv_cases.hpp"
#include "support/pool_cases.hpp"

using namespace skein;
using nn::AvgPool2d;
using nn::GlobalAvgPool;
using nn::MaxPool2d;
using support::LayerHarness;
using support::matches_pytorch;

TEST_CASE("pooling describes itself, and refuses") {
  STATIC_REQUIRE(MaxPool2d<2>::describe({3, {28, 27, 6}}).output == Extents{3, {14, 13, 6}});
  STATIC_REQUIRE(MaxPool2d<2>::describe({3, {28, 27, 6}}).saved_bytes == 14 * 13 * 6);
  STATIC_REQUIRE(MaxPool2d<3, Stride<2>, Padding<1>>::describe({3, {28, 27, 6}}).output == Extents{3, {14, 14, 6}});
  STATIC_REQUIRE(AvgPool2d<3, Stride<1>>::describe({3, {5, 6, 2}}).output == Extents{3, {3, 4, 2}});
  STATIC_REQUIRE(GlobalAvgPool::describe({3, {5, 6, 2}}).output == Extents{1, {2}});
  STATIC_REQUIRE(MaxPool2d<2>::describe({1, {28}}).fault == nn::Fault::wants_image);
  STATIC_REQUIRE(AvgPool2d<2>::describe({1, {28}}).fault == nn::Fault::wants_image);
  STATIC_REQUIRE(GlobalAvgPool::describe({1, {28}}).fault == nn::Fault::wants_image);
  STATIC_REQUIRE(MaxPool2d<4>::describe({3, {3, 8, 6}}).fault == nn::Fault::window_too_large);
  STATIC_REQUIRE(AvgPool2d<4>::describe({3, {3, 8, 6}}).fault == nn::Fault::window_too_large);
  STATIC_REQUIRE(MaxPool2d<4>::describe({3, {3, 8, 6}}).output == Extents{3, {1, 1, 6}});
  assert_layer<MaxPool2d<2>, Shape<4, 4, 1>>();
  assert_layer<AvgPool2d<2>, Shape<4, 4, 1>>();
  assert_layer<GlobalAvgPool, Shape<4, 4, 1>>();
}
TEST_CASE("pooling agrees with PyTorch") {
  using namespace fixtures;
  matches_pytorch<MaxPool2d<2>, Shape<6, 6, 3>>(max_pool_y, max_pool_dx);
  matches_pytorch<MaxPool2d<3, Stride<2>, Padding<1>>, Shape<7, 8, 3>>(max_pool_padded_y, max_pool_padded_dx);
  matches_pytorch<MaxPool2d<2, Stride<3>>, Shape<8, 9, 5>>(max_pool_apart_y, max_pool_apart_dx);
  matches_pytorch<AvgPool2d<2>, Shape<6, 7, 3>>(average_pool_y, average_pool_dx);
  matches_pytorch<AvgPool2d<3, Stride<2>, Padding<1>>, Shape<7, 8, 3>>(average_pool_padded_y, average_pool_padded_dx);
  matches_pytorch<GlobalAvgPool, Shape<5, 4, 6>>(global_average_y, global_average_dx);
}

namespace {
template <class Scalar> void max_pool_follows(const ops::Pool2dGeometry& g, long batch) {
  INFO(g.height << " x " << g.width << " x " << g.channels << ", window " << g.kernel << ", stride " << g.stride << ", batch "
                << batch);
  support::Guarded<Scalar> x(batch * g.in_count()), y(batch * g.out_count()), dy(batch * g.out_count()), dx(batch * g.in_count());
  support::Guarded<ops::ArgMax> winners(batch * g.out_count());
  std::vector<Scalar> y2(y.begin(), y.end()), dx2(dx.begin(), dx.end());
  std::vector<ops::ArgMax> winners2(winners.begin(), winners.end());
  for (long i = 0; i < x.size(); ++i) x[i] = static_cast<Scalar>((i * 37 / 3 + i) % 5 - 2);  // many ties
  for (long i = 0; i < dy.size(); ++i) dy[i] = static_cast<Scalar>(i % 11 - 5);
  ops::max_pool2d_forward<Cpu>(g, batch, x.data(), y.data(), winners.data());
  ops::max_pool2d_backward<Cpu>(g, batch, dy.data(), winners.data(), dx.data());
  ops::reference::max_pool2d_forward(g, batch, x.data(), y2.data(), winners2.data());
  ops::reference::max_pool2d_backward(g, batch, dy.data(), winners2.data(), dx2.data());
  CHECK(std::equal(y.begin(), y.end(), y2.begin()));
  CHECK(std::equal(winners.begin(), winners.end(), winners2.begin()));
  CHECK(std::equal(dx.begin(), dx.end(), dx2.begin()));
  CHECK((y.intact() && dx.intact() && winners.intact()));
}
}  // namespace

TEST_CASE("max-pooling in vectors is max-pooling in loops, for any channel count") {
  for (int channels : {1, 2, 3, 5, 6, 8, 15, 16, 17, 33, 64, 100})
    for (long batch : {0L, 1L, 3L}) {
      max_pool_follows<float>({6, 8, channels, 2, 2, 0}, batch);
      max_pool_follows<double>({7, 9, channels, 3, 2, 1}, batch);
      max_pool_follows<float>({7, 9, channels, 3, 1, 0}, batch);
      max_pool_follows<float>({9, 7, channels, 2, 3, 1}, batch);
    }
}
TEST_CASE("max-pooling: the first of equal values gets the gradient, a NaN wins") { support::check_max_pool_choice<Cpu>(); }
TEST_CASE("pooling: the gradient is the derivative") {
  LayerHarness<MaxPool2d<3, Stride<2>, Padding<1>>, Shape<6, 7, 3>>(2).check_gradients(1e-6, 150, 1e-7);
  LayerHarness<AvgPool2d<3, Stride<2>, Padding<1>>, Shape<6, 7, 3>>(2).check_gradients();
  LayerHarness<GlobalAvgPool, Shape<3, 4, 5>>(3).check_gradients();
}
TEST_CASE("the mean over a large image keeps its digits, whatever the number of channels") {
  for (const long channels : {1L, 3L, 70L}) {
    const long pixels = 128 * 128 + 5, pitch = row_pitch(channels);
    std::vector<float> x(static_cast<std::size_t>(pixels * channels)), y(static_cast<std::size_t>(pitch), -1.0f);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(1 + static_cast<long>(i) % channels);
    ops::global_average_forward<Cpu>(pixels, channels, 1, x.data(), y.data(), pitch);
    for (long c = 0; c < channels; ++c)
      CHECK(y[static_cast<std::size_t>(c)] == Approx(0.1 * static_cast<double>(1 + c)).epsilon(3e-6));
    for (long c = channels; c < pitch; ++c) CHECK(y[static_cast<std::size_t>(c)] == 0);
  }
}
