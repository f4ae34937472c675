// SPDX-License-Identifier: Apache-2.0
// A crop is one of the moves there are, each comes, and it depends on seed, epoch and sample alone; channels are normalised.
#include <skein/data/crop_and_flip.hpp>

#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/data/map.hpp>
#include <skein/data/subset.hpp>

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
  Image odd{1, 2, 3};
  CHECK_THROWS_WITH((sk::data::NormalizeChannels<2>{{1, 2}, {2, 4}}(std::span<float>(odd))),
                    Catch::Contains("a normalization of 2 channels was given a sample of 3 values"));
}

TEST_CASE("CropAndFlip of other extents than the sample's is refused", "[data][crop]") {
  for (const std::size_t values : {28u * 28u, 64u * 64u * 3u}) {
    Image image(values);
    CHECK_THROWS_WITH(sk::data::CropAndFlip{}(std::span<float>(image), 0, 0),
                      Catch::Contains("32 x 32 x 3") && Catch::Contains("was given a sample of " + std::to_string(values)));
  }
}

TEST_CASE("CropAndFlip by a padding that is no number of pixels is refused", "[data][crop]") {
  for (const int padding : {-4, -1, 2'000'000'000}) {
    Image image = whole();
    CHECK_THROWS_WITH((sk::data::CropAndFlip{{height, width, channels}, padding}(std::span<float>(image), 0, 0)),
                      Catch::Contains(".padding is " + std::to_string(padding) + " pixels: give 0"));
  }
  Image image = whole();
  CHECK_THROWS_WITH((sk::data::CropAndFlip{{-height, -width, channels}}(std::span<float>(image), 0, 0)),
                    Catch::Contains("-5 x -4 x 2"));
  CHECK_NOTHROW((sk::data::CropAndFlip{{height, width, channels}, 50}(std::span<float>(image), 0, 0)));
}

namespace {
constexpr int images = 53;  // no number of ranks and no batch divides it
/// Samples whose labels are their indices.
auto numbered() {
  std::vector<float> x(images * height * width * channels);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  std::vector<std::int32_t> labels(images);
  std::iota(labels.begin(), labels.end(), 0);
  return sk::data::from_tensors(x, sk::Extents{3, {height, width, channels}}, labels);
}
/// What loaders of so many ranks serve in two epochs: an image by epoch and label. Each sample is served once in an epoch.
using Served = std::map<std::pair<int, int>, Image>;
template <class Data> Served served(const Data& data, sk::data::LoaderOptions options) {
  Served all;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    sk::data::Loader<float> loader(data, options);
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const auto& batch : loader.epoch(epoch))
        for (long i = 0; i < batch.count; ++i) {
          const float* const x = batch.x + i * batch.pitch;
          CHECK(all.emplace(std::pair(epoch, batch.labels[i]), Image(x, x + height * width * channels)).second);
        }
  }
  return all;
}
/// Under any number of ranks and prefetch threads, in order and shuffled.
template <class Data> void serves_everywhere(const Data& data, const Served& expected) {
  using sk::data::Prefetch;
  for (const int ranks : {1, 2, 4})
    for (const int threads : {0, 1, 3})
      for (const bool shuffle : {false, true}) {
        INFO(ranks << " ranks, " << threads << " prefetch threads, shuffle " << shuffle);
        CHECK(served(data, {.batch = 12,
                            .shuffle = shuffle,
                            .seed = sk::Seed{5},
                            .ranks = ranks,
                            .prefetch = threads > 0 ? Prefetch::on : Prefetch::off,
                            .prefetch_threads = threads}) == expected);
      }
}
}  // namespace

TEST_CASE("CropAndFlip gives a sample the same bits through loaders of any ranks, prefetch threads and orders, and of a subset",
          "[data][crop]") {
  const sk::data::CropAndFlip crop{{height, width, channels}, 2, sk::Seed{7}};
  const auto set = numbered();
  const auto image = [&](int label, int index, int epoch) {
    Image x(height * width * channels);
    std::iota(x.begin(), x.end(), static_cast<float>(label) * static_cast<float>(x.size()) + 1);
    crop(std::span<float>(x), index, epoch);
    return x;
  };
  std::vector<std::int64_t> chosen;
  for (int i = images - 1; i >= 0; i -= 3) chosen.push_back(i);
  Served whole, of_cropped, of_chosen;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < images; ++i) whole[{epoch, i}] = image(i, i, epoch);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const int label = static_cast<int>(chosen[k]);
      of_cropped[{epoch, label}] = image(label, label, epoch);
      of_chosen[{epoch, label}] = image(label, static_cast<int>(k), epoch);
    }
  }
  serves_everywhere(sk::data::map(set, crop), whole);
  serves_everywhere(sk::data::subset(sk::data::map(set, crop), chosen), of_cropped);  // the index is that of the whole set
  serves_everywhere(sk::data::map(sk::data::subset(set, chosen), crop), of_chosen);   // the index is that within the subset
}
