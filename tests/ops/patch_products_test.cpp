// SPDX-License-Identifier: Apache-2.0
// Second moments of patches beside sums over the patches themselves.
#include <skein/ops/patch_products.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>
#include <skein/core/random.hpp>

#include "../support/larger.hpp"

namespace ops = skein::ops;

namespace {
template <class Scalar> void agrees(const ops::Conv2dGeometry& g, long batch, double slack = 1) {
  CAPTURE(g.height, g.width, g.channels, g.kernel, g.stride, g.padding, batch);
  std::vector<Scalar> x(static_cast<std::size_t>(batch * g.in_count()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Scalar>(skein::random_uniform(3, 0, i)) - Scalar(0.4);
  const long n = g.weight_rows(), pixels = g.out_pixels(), pitch = n + 3;
  const auto at = [](long i) { return static_cast<std::size_t>(i); };
  std::vector<Scalar> scratch, here(at(n * pitch), Scalar(1)), patches(at(pixels * n)), sums(at(n), Scalar(2));
  std::vector<double> expected(at(n * n), 1), of_sums(at(n), 2);
  const Scalar factor = Scalar(0.25);
  ops::add_patch_products(g, x.data(), batch, factor, scratch, here.data(), pitch);
  ops::add_patch_sums(g, x.data(), batch, factor, scratch, sums.data());
  for (long b = 0; b < batch; ++b) {
    ops::write_patches(g, x.data() + b * g.in_count(), patches.data());
    for (long p = 0; p < pixels; ++p)
      for (long i = 0; i < n; ++i) {
        const double value = static_cast<double>(patches[at(p * n + i)]);
        of_sums[at(i)] += 0.25 * value;
        for (long j = 0; j <= i; ++j) expected[at(i * n + j)] += 0.25 * value * static_cast<double>(patches[at(p * n + j)]);
      }
  }
  const double close = slack * (sizeof(Scalar) == 4 ? 4e-7 : 1e-15) * static_cast<double>(batch * pixels + 64);
  double apart = 0;
  for (long i = 0; i < n; ++i) {
    apart = support::larger(apart, static_cast<double>(sums[at(i)]) - of_sums[at(i)]);
    for (long j = 0; j <= i; ++j)
      apart = support::larger(apart, static_cast<double>(here[at(i * pitch + j)]) - expected[at(i * n + j)]);
  }
  CHECK(apart <= close);
}
}  // namespace

TEMPLATE_TEST_CASE("Products of patches are those of the patches", "[ops]", float, double) {
  for (const int channels : {3, 8, 16, 32, 48})
    for (const int kernel : {1, 2, 3, 5})
      for (const int padding : {0, 1, 2})
        for (const int side : {5, 8}) {
          const ops::Conv2dGeometry g{
              .height = side, .width = side + 1, .channels = channels, .filters = 4, .kernel = kernel, .padding = padding};
          if (g.fits()) agrees<TestType>(g, 7);
        }
  // Rows of the window that see nothing of such images.
  agrees<TestType>({.height = 1, .width = 40, .channels = 8, .filters = 4, .kernel = 5, .padding = 2}, 100, 8);
  agrees<TestType>({.height = 64, .width = 2, .channels = 8, .filters = 4, .kernel = 7, .padding = 3}, 50, 8);
  agrees<TestType>({.height = 9, .width = 8, .channels = 16, .filters = 4, .kernel = 3, .stride = 2, .padding = 1}, 3);
  agrees<TestType>({.height = 9, .width = 8, .channels = 16, .filters = 4, .kernel = 3, .padding = 2, .dilation = 2}, 3);
  agrees<TestType>({.height = 3, .width = 8, .channels = 16, .filters = 4, .kernel = 3, .padding = 1, .dimensions = 1}, 3);
  agrees<TestType>(
      {.height = 4, .width = 5, .channels = 16, .filters = 4, .kernel = 3, .padding = 1, .dimensions = 3, .depth = 6}, 3);
}
