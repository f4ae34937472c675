// SPDX-License-Identifier: Apache-2.0
// What max-pooling does with equal values and with NaNs, on every device. A .cu file includes skein/cuda.hpp before it.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>

#include <skein/nn/max_pool2d.hpp>

#include "layer_harness.hpp"

namespace support {

/// The first of equal values gets the gradient, a NaN wins.
template <class Device> void check_max_pool_choice() {
  LayerHarness<sk::nn::MaxPool2d<2>, sk::Shape<2, 2, 17>, float, Device> h(1);
  h.set_x([](long, long) { return 3.0; });
  h.set_dy([](long, long i) { return static_cast<double>(i); });
  h.forward();
  h.backward();
  for (long c = 0; c < 17; ++c) {
    CHECK(h.dx_at(0, c) == static_cast<float>(c));
    CHECK(h.dx_at(0, 17 + c) + h.dx_at(0, 34 + c) + h.dx_at(0, 51 + c) == 0);
  }
  h.x_at(0, 17 + 4) = h.nan();
  h.forward();
  CHECK(std::isnan(h.y_at(0, 4)));
  CHECK(h.y_at(0, 5) == 3);
}

}  // namespace support
