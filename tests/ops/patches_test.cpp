// SPDX-License-Identifier: Apache-2.0
// The patches of an image times the weight are its convolution, along any number of dimensions.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include <skein/ops/patches.hpp>

#include "support/apart.hpp"

using namespace skein;
using ops::Conv2dGeometry;

TEST_CASE("Patches times the weight are the convolution", "[ops]") {
  for (const Conv2dGeometry& g :
       {Conv2dGeometry{7, 6, 3, 5, 3, 2, 1}, Conv2dGeometry{8, 9, 2, 4, 2, 1, 0, 3},
        Conv2dGeometry{.width = 11, .channels = 3, .filters = 5, .kernel = 4, .stride = 2, .padding = 1, .dimensions = 1},
        Conv2dGeometry{
            .height = 4, .width = 5, .channels = 2, .filters = 3, .kernel = 3, .padding = 1, .dimensions = 3, .depth = 3}}) {
    INFO(g.dimensions << " dimensions");
    const std::vector<double> x = test::wave(g.in_count(), 0.7), weight = test::wave(g.weight_rows() * g.weight_pitch(), 1.1);
    std::vector<double> y(static_cast<std::size_t>(g.out_count())), product(y.size()),
        patches(static_cast<std::size_t>(g.out_pixels() * g.weight_rows()), 7);
    ops::reference::conv2d_forward(g, ops::Conv2dCall<double>{.batch = 1, .x = x.data(), .weight = weight.data(), .y = y.data()});
    ops::write_patches(g, x.data(), patches.data());
    for (long p = 0; p < g.out_pixels(); ++p)
      for (long r = 0; r < g.weight_rows(); ++r)
        for (long f = 0; f < g.filters; ++f)
          product[static_cast<std::size_t>(p * g.filters + f)] += patches[static_cast<std::size_t>(p * g.weight_rows() + r)] *
                                                                  weight[static_cast<std::size_t>(r * g.weight_pitch() + f)];
    CHECK(test::first_apart<double>(product, y, 64) == -1);
  }
}
