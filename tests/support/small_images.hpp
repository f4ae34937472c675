// SPDX-License-Identifier: Apache-2.0
// Images for tests of K-FAC: few, so that some ranks and batches get fewer than others.
#pragma once
#include <skein/core/random.hpp>
#include <skein/data/from_tensors.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {
/// 37 images of 6 x 6 pixels and two channels, in three classes: of a rank's own.
inline auto small_images(int rank = 0) {
  std::vector<double> x(72 * 37);
  std::vector<std::int32_t> labels(37);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(skein::random_uniform(3, static_cast<std::uint64_t>(rank), i)) - 0.5;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>((i + static_cast<std::size_t>(rank)) % 3);
  return skein::data::from_tensors(x, skein::Extents{3, {6, 6, 2}}, labels);
}
}  // namespace support
