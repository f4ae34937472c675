// SPDX-License-Identifier: Apache-2.0
// A small data set: random values, and classes that follow from them, so that a training has something to learn.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <skein/core/random.hpp>
#include <skein/core/shape.hpp>
#include <skein/data/from_tensors.hpp>

namespace support {

/// n samples of values in [-0.5, 0.5); a sample's first three say which of three classes is its.
struct Points {
  skein::Extents extents;
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  Points(std::size_t n, const skein::Extents& sample)
      : extents(sample), x(n * static_cast<std::size_t>(sample.count())), labels(n) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = skein::random_uniform(7, 0, i) - 0.5f;
    for (std::size_t i = 0; i < n; ++i) {
      const float* const of = x.data() + i * (x.size() / n);
      labels[i] = of[0] + of[1] > 0 ? 1 : of[2] > 0 ? 2 : 0;
    }
  }
  auto set() const { return skein::data::from_tensors(x, extents, labels); }
};

}  // namespace support
