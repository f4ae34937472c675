// SPDX-License-Identifier: Apache-2.0
// Flatten: no copy where the image already is a stored row, else the values move apart.
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/flatten.hpp>

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
