// SPDX-License-Identifier: Apache-2.0
// Augmentation of images for data::map: a random crop of the image with a border of zeros, a flip of every second one, and
// normalisation by channel. What a sample becomes depends on (seed, epoch, its index): not on ranks, threads or batches.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"
#include "normalization.hpp"

namespace skein::inline SKEIN_ABI::data {

/// (value - mean) / deviation by channel, of images of Channels, dense, channels last.
template <int Channels> struct NormalizeChannels {
  std::array<double, Channels> mean{}, deviation{};
  Normalization normalization() const { return {{mean.begin(), mean.end()}, {deviation.begin(), deviation.end()}}; }
  template <class Scalar> void operator()(std::span<Scalar> sample) const {
    if (sample.size() % Channels != 0)
      throw ShapeError(text("a normalization of {} channels was given a sample of {} values", Channels, sample.size()));
    std::array<Scalar, Channels> scale{}, shift{};
    for (std::size_t c = 0; c < Channels; ++c) {
      scale[c] = static_cast<Scalar>(1 / deviation[c]);
      shift[c] = static_cast<Scalar>(-mean[c] / deviation[c]);
    }
    for (std::size_t i = 0; i < sample.size(); i += Channels)
      for (std::size_t c = 0; c < Channels; ++c) sample[i + c] = sample[i + c] * scale[c] + shift[c];
  }
};

/// The constants that are usual for CIFAR-10.
inline constexpr NormalizeChannels<3> cifar10_channels{{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}};

/// Moves an image by up to `padding` pixels each way, zeros come in, and turns left and right with probability 1/2. Before
/// normalisation, so that zeros are black: map(map(set, CropAndFlip{{32, 32, 3}}), cifar10_channels).
struct CropAndFlip {
  std::array<int, 3> extents{32, 32, 3};  ///< height, width, channels
  int padding = 4;                        ///< pixels, 0 or more
  Seed seed{};

  template <class Scalar> void operator()(std::span<Scalar> sample, std::int64_t index, std::int64_t epoch) const {
    const long values = 1L * extents[0] * extents[1] * extents[2];
    if (static_cast<long>(sample.size()) != values || std::min(extents[0], extents[1]) < 1) refuse(sample.size());
    if (padding < 0 || padding > most_padding) refuse_padding();
    const std::uint64_t key = random_key(random_key(seed.value, 0x63726f70), static_cast<std::uint64_t>(epoch));  // "crop"
    const auto draw = [&](std::uint64_t which, int n) {
      const float u = random_uniform(key, static_cast<std::uint64_t>(index), which);
      return std::min(n - 1, static_cast<int>(u * static_cast<float>(n)));
    };
    shift(sample, draw(0, 2 * padding + 1) - padding, draw(1, 2 * padding + 1) - padding);
    if (draw(2, 2) == 1) flip(sample);
  }

 private:
  static constexpr int most_padding = 1'000'000;
  [[noreturn]] void refuse(std::size_t values) const {
    throw ShapeError(
        text("CropAndFlip of images of {} x {} x {} (height x width x channels) was given a sample of {} values: give it the "
             ".extents of the set's samples",
             extents[0], extents[1], extents[2], values));
  }
  [[noreturn]] void refuse_padding() const {
    throw ArgumentError(text("CropAndFlip: .padding is {} pixels: give 0, for flips alone, to {}", padding, most_padding));
  }
  /// Row r gets row r + down, column c column c + right, zeros where there is none. In place: rows in the order that reads first.
  template <class Scalar> void shift(std::span<Scalar> sample, int down, int right) const {
    const auto [height, width, channels] = extents;
    const long row = 1L * width * channels, by = 1L * right * channels;
    for (int k = 0; k < height; ++k) {
      const int r = down >= 0 ? k : height - 1 - k, from = r + down;
      Scalar* to = sample.data() + r * row;
      if (from < 0 || from >= height) {
        std::fill(to, to + row, Scalar(0));
        continue;
      }
      const Scalar* source = sample.data() + from * row;
      const long kept = std::max(0L, row - (by < 0 ? -by : by));
      if (by >= 0) {
        std::copy(source + row - kept, source + row, to);  // to stands before the source
        std::fill(to + kept, to + row, Scalar(0));
      } else {
        std::copy_backward(source, source + kept, to + row);
        std::fill(to, to + row - kept, Scalar(0));
      }
    }
  }
  template <class Scalar> void flip(std::span<Scalar> sample) const {
    const auto [height, width, channels] = extents;
    for (int r = 0; r < height; ++r) {
      Scalar* row = sample.data() + 1L * r * width * channels;
      for (int a = 0, b = width - 1; a < b; ++a, --b)
        std::swap_ranges(row + a * channels, row + (a + 1) * channels, row + b * channels);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::data
