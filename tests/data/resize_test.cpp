// SPDX-License-Identifier: Apache-2.0
#include <skein/data/resize.hpp>

#include <cmath>
#include <vector>

#include <skein/core/error.hpp>

#include <catch2/catch.hpp>

using namespace skein::data;

// Beside PyTorch: x = sin(1.7 i) as (1, 5, 7, 2), F.interpolate(x.permute(0, 3, 1, 2), size, mode="bilinear", antialias=True), of
// which the first four values, the sum, and the sum of value times index in the order (height, width, channels).
TEST_CASE("An image of another size is PyTorch's, antialiased, larger and smaller") {
  std::vector<float> image(5 * 7 * 2);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<float>(i) * 1.7f);
  struct Expected {
    ImageSize to;
    float first[4];
    double sum, moment;
  };
  for (const Expected& e : {Expected{{3, 4}, {-0.12066046f, 0.0806431f, -0.01782663f, 0.04553943f}, 0.03365555, -1.1319295},
                            Expected{{10, 9}, {0.0f, 0.99166483f, -0.17036082f, -0.28665492f}, 0.48651463, -85.437874},
                            Expected{{2, 7}, {-0.46737194f, 0.24157655f, 0.405119985f, -0.34597164f}, -0.07333028, -3.4977837}}) {
    const std::vector<float> to = resize(image, {5, 7}, e.to, 2);
    REQUIRE(to.size() == static_cast<std::size_t>(e.to.height * e.to.width * 2));
    double sum = 0, moment = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      sum += static_cast<double>(to[i]);
      moment += static_cast<double>(to[i]) * static_cast<double>(i);
    }
    for (std::size_t i = 0; i < 4; ++i) CHECK(to[i] == Approx(e.first[i]).margin(2e-6).epsilon(0));
    CHECK(sum == Approx(e.sum).margin(1e-4));
    CHECK(moment == Approx(e.moment).margin(1e-3));
  }
}

TEST_CASE("An image of the same size is itself, and one of a constant stays it") {
  const std::vector<float> image{1, 2, 3, 4, 5, 6};
  CHECK(resize(image, {2, 3}, {2, 3}, 1) == image);
  for (const float v : resize(std::vector<float>(20, 0.25f), {4, 5}, {7, 3}, 1)) CHECK(v == Approx(0.25f));
}

TEST_CASE("Sizes that are none are refused") {
  const std::vector<float> image(6);
  CHECK_THROWS_WITH(resize(image, {2, 3}, {0, 3}, 1), Catch::Contains("positive numbers"));
  CHECK_THROWS_WITH(resize(image, {2, 2}, {3, 3}, 1),
                    Catch::Contains("an image of 2 x 2 with 1 channels has other than 6 values"));
}
