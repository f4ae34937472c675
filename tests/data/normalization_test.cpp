// SPDX-License-Identifier: Apache-2.0
#include <skein/data/normalization.hpp>

#include <catch2/catch.hpp>

#include <skein/data/crop_and_flip.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/join.hpp>
#include <skein/data/standardizer.hpp>
#include <skein/train/archive.hpp>

namespace sk = skein;
namespace data = skein::data;

namespace {
std::vector<double> values(data::DatasetView set) {
  const long each = set.sample_extents().count();
  std::vector<double> all(static_cast<std::size_t>(set.size() * each));
  for (std::int64_t i = 0; i < set.size(); ++i) set.gather({&i, 1}, all.data() + i * each, each);
  return all;
}
/// The raw set, normalised as `set` says, has the values of `set`.
template <class Raw, class Set> void check_says(const Raw& raw, const Set& set) {
  CHECK(data::DatasetView(raw).normalization().identity());
  const data::Normalization says = set.normalization();
  CHECK_FALSE(says.identity());
  const auto expected = values(set), found = values(data::map(raw, says));
  REQUIRE(expected.size() == found.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-5));
}
const data::InMemory<float> images({3, {1, 2, 3}}, {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13});
const data::InMemory<std::uint8_t> bytes({3, {1, 2, 1}}, {0, 255, 51, 102});
}  // namespace

TEST_CASE("A data set says how it is normalised", "[data]") {
  check_says(images, images.normalize(3, 2));
  check_says(bytes, bytes.normalize(0.25, 0.5));
  CHECK(bytes.normalization().divisor == 255);
  CHECK(data::DatasetView(bytes.normalize(0.25, 0.5)).normalization().mean == std::vector{0.25});
  check_says(images.subset({1, 0}), data::normalize(images.subset({1, 0}), 3, 2));
  const data::NormalizeChannels<3> channels{{1, 2, 3}, {4, 5, 6}};
  check_says(images, data::map(images, channels));
  check_says(images, data::map(images.normalize(3, 2), channels));  // one after the other
  check_says(images, data::map(images, data::Standardizer(images)));
  CHECK_THROWS_WITH(data::Normalization({{1, 2}, {1, 1}}).then({{1, 2, 3}, {1, 1, 1}}),
                    Catch::Contains("a normalization of 2 means is followed by one of 3"));
}

TEST_CASE("A normalization of other counts than the samples have is refused", "[data]") {
  const auto gray = data::from_tensors(std::vector<float>(8), sk::Extents{3, {2, 4, 1}});
  CHECK_THROWS_WITH(data::map(gray, data::Normalization{{0.1, 0.2}, {1, 1}}),
                    Catch::Contains("a normalization of 2 means and 2 deviations, and samples of 8 values in 1 channels"));
  CHECK_THROWS_WITH(data::map(gray, data::Normalization{{0.1}, {}}), Catch::Contains("of 1 means and 0 deviations"));
  CHECK_THROWS_WITH(data::map(gray, data::cifar10_channels), Catch::Contains("of 3 means and 3 deviations"));
  CHECK_NOTHROW(data::map(gray, data::Normalization{std::vector<double>(8, 0.1), std::vector<double>(8, 1)}));
  std::vector<float> sample(3);
  CHECK_THROWS_AS((data::Normalization{{0.1, 0.2, 0.3}, {1}}(std::span(sample))), sk::ShapeError);
  CHECK_THROWS_AS((data::Normalization{{0.1, 0.2}, {1, 1}}(std::span(sample))), sk::ShapeError);
}

TEST_CASE("A normalization that leaves out a function of data::map is not kept", "[data]") {
  const auto normal = images.normalize(3, 2);
  const auto halve = [](std::span<float> sample) {
    for (float& value : sample) value /= 2;
  };
  const auto noise = [](std::span<float> sample, std::int64_t index, std::int64_t epoch) {
    sample[0] += 0.1f * static_cast<float>(index * epoch);
  };
  const auto refused = [](const data::Normalization& n) {
    CHECK_FALSE(n.whole);
    CHECK_THROWS_WITH(sk::train::to_bytes(n),
                      Catch::Contains("keep: data::map changes the samples of this set by a function that is "
                                      "no Normalization, which a predictor would leave out"));
  };
  refused(data::map(normal, halve).normalization());
  refused(data::map(images, halve).normalization());
  refused(data::map(data::map(images, halve), data::Normalization{{1}, {2}}).normalization());
  refused(data::map(images, halve).normalization().then({{1}, {2}}));
  refused(data::Normalization{}.then(data::map(images, halve).normalization()));
  refused(data::join(normal, data::map(images, halve)).normalization());
  refused(data::DatasetView(data::map(normal, halve)).normalization());
  CHECK_NOTHROW(sk::train::to_bytes(data::map(normal, noise).normalization()));  // of training samples only
  CHECK(data::map(normal, noise).normalization().mean == std::vector<double>{3});
  CHECK_NOTHROW(sk::train::to_bytes(data::map(normal, data::Normalization{{1}, {2}}).normalization()));
}

TEST_CASE("Joined data sets say how each of their values is normalised", "[data]") {
  const data::InMemory<float> table({1, {3}}, {1, 20, 300, 4, 50, 600});
  const data::NormalizeChannels<3> channels{{1, 2, 3}, {4, 5, 6}};
  const auto raw = data::join(images, table);  // 6 values of an image, 3 of the table
  check_says(raw, data::join(data::map(images, channels), table));
  check_says(raw, data::join(images.normalize(3, 2), data::map(table, data::Standardizer(table))));
  check_says(raw, data::normalize(data::join(images, table.normalize(3, 2)), 1, 4));  // one after the other
  check_says(data::join(bytes, table), data::join(bytes.normalize(0.25, 0.5), table));
  CHECK(data::join(images, table.normalize(20, 10)).normalization().mean == std::vector<double>{0, 0, 0, 0, 0, 0, 20, 20, 20});
  CHECK(data::join(bytes, bytes).normalization().divisor == 255);
  CHECK(data::join(bytes, table).normalization().divisor == 1);  // of the table's values
  struct Silent {
    std::int64_t size() const { return 2; }
    sk::Extents sample_extents() const { return {1, {1}}; }
    void gather(data::Indices, float*, long) const {}
  };
  STATIC_REQUIRE(data::HasNormalization<data::Joined<Silent, data::InMemory<float>>>);
  STATIC_REQUIRE_FALSE(data::HasNormalization<data::Joined<Silent, Silent>>);
}

namespace {
struct MeanAndDeviation {  // what a Standardizer writes
  std::vector<double> mean, deviation;
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & mean & deviation); }
};
}  // namespace

TEST_CASE("A normalization goes through an archive, and a damaged one is refused", "[data]") {
  const data::Normalization written{{1, 2}, {3, 4}, 255};
  data::Normalization read;
  sk::train::from_bytes(sk::train::to_bytes(written), read, "it");
  CHECK(read.mean == written.mean);
  CHECK(read.deviation == written.deviation);
  CHECK(read.divisor == 255);
  for (const data::Normalization& bad : {data::Normalization{{1}, {}}, {{1}, {0}}, {{1}, {1}, 0}})
    CHECK_THROWS_WITH(sk::train::from_bytes(sk::train::to_bytes(bad), read, "it"),
                      Catch::Contains("as many deviations as means"));
  data::Standardizer standard;
  CHECK_THROWS_WITH(sk::train::from_bytes(sk::train::to_bytes(MeanAndDeviation{{1}, {0}}), standard, "it"),
                    Catch::Contains("as many deviations as means, all positive"));
}
