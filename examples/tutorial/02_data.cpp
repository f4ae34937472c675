// SPDX-License-Identifier: Apache-2.0
// Step 2 of docs/tutorial.md: a data set of two arrays.
#include <skein/skein.hpp>

#include <cmath>
#include <cstdio>
#include <vector>
namespace sk = skein;

int main() {
  std::vector<float> x, y;  // 1,000 points of a curve
  for (int i = 0; i < 1000; ++i) {
    x.push_back(0.002f * static_cast<float>(i) - 1);
    y.push_back(std::sin(3 * x.back()));
  }
  const auto points = sk::data::from_tensors(x, y);  // one number in, one number out
  const auto [training, validation] = sk::data::split(points, 0.8, sk::Seed{1});
  std::printf("%ld points: %ld to train with, %ld to validate with\n", static_cast<long>(points.size()),
              static_cast<long>(training.size()), static_cast<long>(validation.size()));
}
