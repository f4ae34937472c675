// SPDX-License-Identifier: Apache-2.0
// A crop is one of the moves there are, each comes, and it depends on seed, epoch and sample alone; channels are normalised.
#include <skein/data/crop_and_flip.hpp>

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace sk = skein;

namespace {
constexpr int height = 5, width = 4, channels = 2;
using Image = std::vector<float>;

Image whole() {
  Image image(height * width * channels);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i + 1);
  return image;
}
Image moved(int down, int right, bool flips) {
  const Image x = whole();
  Image y(x.size(), 0);
  for (int r = 0; r < height; ++r)
    for (int c = 0; c < width; ++c)
      for (int k = 0; k < channels; ++k) {
        const int from_row = r + down, from_column = (flips ? width - 1 - c : c) + right;
        if (from_row >= 0 && from_row < height && from_column >= 0 && from_column < width)
          y[static_cast<std::size_t>((r * width + c) * channels + k)] =
              x[static_cast<std::size_t>((from_row * width + from_column) * channels + k)];
      }
  return y;
}
Image cropped(const sk::data::CropAndFlip& crop, std::int64_t index, std::int64_t epoch) {
  Image image = whole();
  crop(std::span<float>(image), index, epoch);
  return image;
}
}  // namespace

TEST_CASE("CropAndFlip makes every move, with and without a flip, and no other", "[data][crop]") {
  const sk::data::CropAndFlip crop{{height, width, channels}, 2, sk::Seed{7}};
  std::set<Image> expected, seen;
  for (int down = -2; down <= 2; ++down)
    for (int right = -2; right <= 2; ++right)
      for (const bool flips : {false, true}) expected.insert(moved(down, right, flips));
  REQUIRE(expected.size() == 50);
  int flipped = 0, differ = 0;
  for (int i = 0; i < 2000; ++i) {
    const Image image = cropped(crop, i, 3);
    seen.insert(image);
    for (int down = -2; down <= 2; ++down)
      for (int right = -2; right <= 2; ++right) flipped += image == moved(down, right, true);
    differ += cropped(crop, i, 4) != image;
    if (i < 10) CHECK(cropped(crop, i, 3) == image);
  }
  CHECK(seen == expected);
  CHECK((flipped > 900 && flipped < 1100));
  CHECK(differ > 1900);
  CHECK(cropped({{height, width, channels}, 2, sk::Seed{8}}, 0, 3) != cropped(crop, 0, 3));
}

TEST_CASE("NormalizeChannels: each channel with its mean and deviation", "[data][crop]") {
  Image image{1, 2, 3, 4};
  sk::data::NormalizeChannels<2>{{1, 2}, {2, 4}}(std::span<float>(image));
  CHECK(image == Image{0, 0, 1, 0.5f});
}
