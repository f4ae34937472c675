// SPDX-License-Identifier: Apache-2.0
// The bodies of resize.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "../core/error.hpp"
#include "resize.hpp"

namespace skein::inline SKEIN_ABI::data {

namespace detail {
/// Which old values make a new one along a side: weights[k] of the value first + k.
struct ResizeTap {
  int first = 0;
  std::vector<float> weights;
};
SKEIN_INLINE std::vector<ResizeTap> resize_taps(int from, int to) {
  const double scale = static_cast<double>(from) / to, reach = std::max(scale, 1.0);
  std::vector<ResizeTap> taps(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    ResizeTap& tap = taps[static_cast<std::size_t>(i)];
    const double center = (i + 0.5) * scale;
    tap.first = std::max(0, static_cast<int>(center - reach + 0.5));
    const int end = std::min(from, static_cast<int>(center + reach + 0.5));
    double sum = 0;
    std::vector<double> weights;
    for (int j = tap.first; j < end; ++j) {
      weights.push_back(std::max(0.0, 1 - std::abs((j + 0.5 - center) / reach)));
      sum += weights.back();
    }
    for (const double w : weights) tap.weights.push_back(static_cast<float>(w / sum));
  }
  return taps;
}
}  // namespace detail

SKEIN_INLINE std::vector<float> resize(std::span<const float> image, ImageSize from, ImageSize to, int channels) {
  const auto size = [](long n) { return static_cast<std::size_t>(n); };
  if (std::min({from.height, from.width, to.height, to.width, channels}) < 1)
    throw ArgumentError("resize: height, width and channels are positive numbers");
  if (image.size() != size(from.height) * size(from.width) * size(channels))
    throw ArgumentError(text("resize: an image of {} x {} with {} channels has other than {} values", from.height, from.width,
                             channels, image.size()));
  const auto columns = detail::resize_taps(from.width, to.width), rows = detail::resize_taps(from.height, to.height);
  const std::size_t wide = size(to.width) * size(channels);
  std::vector<float> narrowed(size(from.height) * wide, 0.0f), result(size(to.height) * wide, 0.0f);
  for (std::size_t y = 0; y < size(from.height); ++y)
    for (std::size_t x = 0; x < columns.size(); ++x)
      for (std::size_t k = 0; k < columns[x].weights.size(); ++k) {
        const float* const pixel = image.data() + ((y * size(from.width)) + size(columns[x].first) + k) * size(channels);
        for (std::size_t c = 0; c < size(channels); ++c)
          narrowed[y * wide + x * size(channels) + c] += columns[x].weights[k] * pixel[c];
      }
  for (std::size_t y = 0; y < rows.size(); ++y)
    for (std::size_t k = 0; k < rows[y].weights.size(); ++k) {
      const float* const row = narrowed.data() + (size(rows[y].first) + k) * wide;
      for (std::size_t i = 0; i < wide; ++i) result[y * wide + i] += rows[y].weights[k] * row[i];
    }
  return result;
}

}  // namespace skein::inline SKEIN_ABI::data
