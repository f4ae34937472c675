// SPDX-License-Identifier: Apache-2.0
// Flatten and Reshape: no copy where both shapes are stored alike, else the values move apart. Slice: columns of the last extent.
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/check_gradients.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/slice.hpp>

#include "../support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;

static_assert((sk::assert_layer<nn::Flatten, sk::Shape<5, 5, 16>>(), true));
static_assert(nn::Flatten::describe({3, {5, 5, 16}}).aliases_input, "400 values are 25 lines: a dense row");
static_assert(!nn::Flatten::describe({3, {3, 5, 7}}).aliases_input, "105 values are stored as 112");
static_assert(!nn::Flatten::describe({3, {8, 8, 8}}).aliases_input, "512 values are stored as 528");
static_assert(nn::Flatten::describe({1, {105}}).aliases_input);
static_assert(nn::Flatten::describe({3, {3, 5, 7}}).output == sk::Extents{1, {105}});

TEMPLATE_TEST_CASE("Flatten: values keep their order", "[flatten]", (sk::Shape<5, 5, 16>), (sk::Shape<3, 5, 7>),
                   (sk::Shape<1, 1, 3>)) {
  for (long batch : {0L, 1L, 5L}) {
    support::LayerHarness<nn::Flatten, TestType> h(batch, 2);
    h.forward();
    h.backward();
    for (long b = 0; b < batch; ++b)
      for (long i = 0; i < TestType::count; ++i) {
        CHECK(h.y_at(b, i) == h.x_at(b, i));
        CHECK(h.dx_at(b, i) == h.dy_at(b, i));
      }
    CHECK(h.intact());
  }
}

static_assert((sk::assert_layer<nn::Reshape<7, 15>, sk::Shape<3, 5, 7>>(), true));
static_assert(nn::Reshape<7, 15>::describe({3, {3, 5, 7}}).aliases_input, "both are dense");
static_assert(nn::Reshape<35, 3>::describe({1, {105}}).fault == nn::Fault::none);
static_assert(nn::Reshape<35, 4>::describe({1, {105}}).fault == nn::Fault::reshape_count);
static_assert(nn::Slice<1, 3>::describe({3, {4, 4, 5}}).output == sk::Extents{3, {4, 4, 2}});
static_assert(nn::Slice<1, 6>::describe({3, {4, 4, 5}}).fault == nn::Fault::slice_outside);

TEST_CASE("Reshape: values keep their order", "[flatten]") {
  support::LayerHarness<nn::Reshape<35, 3>, sk::Shape<105>> h(3, 2);
  h.forward();
  h.backward();
  for (long b = 0; b < 3; ++b)
    for (long i = 0; i < 105; ++i) {
      CHECK(h.y_at(b, i) == h.x_at(b, i));
      CHECK(h.dx_at(b, i) == h.dy_at(b, i));
    }
  CHECK(h.intact());
}

TEMPLATE_TEST_CASE("Slice: columns as x[..., 2:5] in PyTorch, and zeros for the gradient of the others", "[slice]",
                   (sk::Shape<3, 4, 7>), (sk::Shape<9>), (sk::Shape<5, 5>)) {
  for (long batch : {0L, 1L, 4L}) {
    support::LayerHarness<nn::Slice<2, 5>, TestType> h(batch, 2);
    h.forward();
    h.backward();
    constexpr long columns = TestType::extents.last();
    for (long b = 0; b < batch; ++b)
      for (long i = 0; i < TestType::count; ++i) {
        const long row = i / columns, column = i % columns, at = row * 3 + column - 2;
        const bool inside = column >= 2 && column < 5;
        if (inside) CHECK(h.y_at(b, at) == h.x_at(b, i));
        CHECK(h.dx_at(b, i) == (inside ? h.dy_at(b, at) : 0));
      }
    CHECK(h.intact());
  }
}

TEST_CASE("Slice and Reshape within a network have its gradient", "[slice]") {
  using Net = nn::Sequential<nn::Linear<24>, nn::Reshape<2, 3, 4>, nn::Slice<1, 3>, nn::Flatten, nn::Linear<2>>;
  const auto check = sk::check_gradients<Net, sk::Shape<5>>();
  INFO(check.text());
  CHECK(bool(check));
}
