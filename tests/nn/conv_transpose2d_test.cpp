// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/check_gradients.hpp>
#include <skein/nn/conv_transpose2d.hpp>

#include "fixtures/conv.hpp"
#include "support/conv_cases.hpp"

using namespace skein;
using support::LayerHarness;
using support::matches_pytorch;

namespace {
/// Sum of a times b.
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
}  // namespace

TEST_CASE("ConvTranspose2d describes itself, and refuses") {
  constexpr LayerInfo i = nn::ConvTranspose2d<16, Kernel<2>, Stride<2>>::describe({3, {7, 9, 32}});
  static_assert(i.output == Extents{3, {14, 18, 16}} && i.parameters[0].extents == Extents{4, {2, 2, 16, 32}});
  static_assert(i.parameters[0].fan_in == 64 && i.parameters[1].extents == Extents{1, {16}});  // PyTorch's fan of (32, 16, 2, 2)
  using Exact = nn::ConvTranspose2d<4, Kernel<3>, Stride<2>, Padding<1>, OutputPadding<1>, NoBias>;
  static_assert(Exact::describe({3, {7, 9, 6}}).output == Extents{3, {14, 18, 4}} &&
                Exact::describe({3, {7, 9, 6}}).entries() == 1);
  STATIC_REQUIRE(Exact::describe({1, {9}}).fault == nn::Fault::wants_image);
  STATIC_REQUIRE(nn::ConvTranspose2d<4, Kernel<1>, Padding<1>>::describe({3, {2, 5, 3}}).fault == nn::Fault::no_output);
  STATIC_REQUIRE(nn::ConvTranspose2d<4, Kernel<1>, Groups<2>>::describe({3, {2, 5, 3}}).fault == nn::Fault::groups_do_not_divide);
  assert_layer<Exact, Shape<9, 9, 4>>();
}

TEST_CASE("ConvTranspose2d agrees with PyTorch") {
  using namespace fixtures;
  matches_pytorch<nn::ConvTranspose2d<3, Kernel<2>, Stride<2>>, Shape<3, 4, 6>>(transpose_y, transpose_dx, transpose_dweight,
                                                                                transpose_dbias);
  matches_pytorch<nn::ConvTranspose2d<4, Kernel<3>, Stride<2>, Padding<1>, OutputPadding<1>>, Shape<3, 2, 5>>(
      transpose_padded_y, transpose_padded_dx, transpose_padded_dweight, transpose_padded_dbias);
  matches_pytorch<nn::ConvTranspose2d<6, Kernel<3>, Groups<2>, Dilation<2>, Padding<1>, NoBias>, Shape<3, 4, 4>>(
      transpose_grouped_y, transpose_grouped_dx, transpose_grouped_dweight);
}

TEST_CASE("ConvTranspose2d: the gradient is the derivative, by any number of workers") {
  LayerHarness<nn::ConvTranspose2d<3, Kernel<3>, Stride<2>, Padding<1>>, Shape<4, 3, 2>>(3, 2).check_gradients();
  LayerHarness<nn::ConvTranspose2d<4, Kernel<2>, Groups<2>, NoBias>, Shape<3, 3, 4>>(4, 4).check_gradients();
  const auto found = check_gradients<nn::ConvTranspose2d<5, Kernel<4>, Stride<2>, Padding<1>>, Shape<3, 4, 3>>();
  INFO(found.text());
  CHECK(bool(found));
}

TEST_CASE("ConvTranspose2d is the adjoint of the convolution with its weight: <y, T x> = <C y, x>") {
  using T = nn::ConvTranspose2d<5, Kernel<3>, Stride<2>, Padding<1>, NoBias>;  // (4, 3, 6) to (7, 5, 5)
  using C = nn::Conv2d<6, Kernel<3>, Stride<2>, Padding<1>, NoBias>;           // (7, 5, 5) to (4, 3, 6)
  LayerHarness<T, Shape<4, 3, 6>> up(2);
  LayerHarness<C, Shape<7, 5, 5>> down(2);
  support::scatter(up);
  support::scatter(down);
  up.forward();
  down.forward();
  CHECK(dot(support::doubles(up.y), support::doubles(down.x)) ==
        Approx(dot(support::doubles(up.x), support::doubles(down.y))).epsilon(1e-12));
}

TEST_CASE("ConvTranspose2d without dx adds to its gradients only") {
  LayerHarness<nn::ConvTranspose2d<3, Kernel<2>, Stride<2>>, Shape<3, 4, 2>, float> h(3);
  h.forward();
  h.backward();
  const auto once = support::gradient_of(h, 0), bias = support::gradient_of(h, 1);
  h.backward(false, true);
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(support::gradient_of(h, 0)[i] == Approx(2 * once[i]).margin(1e-5));
  for (std::size_t i = 0; i < bias.size(); ++i) CHECK(support::gradient_of(h, 1)[i] == Approx(2 * bias[i]).margin(1e-5));
  CHECK(h.intact());
}
