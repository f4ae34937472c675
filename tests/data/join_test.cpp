// SPDX-License-Identifier: Apache-2.0
// Data sets side by side: what each would have served, one after the other.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/join.hpp>
#include <skein/data/loader.hpp>
#include <skein/data/map.hpp>
#include <skein/data/csv.hpp>
#include <skein/data/table_encoder.hpp>
#include <skein/data/table_split.hpp>
#include <skein/tensor/tensor.hpp>

#include "support/thrown.hpp"

namespace sk = skein;
namespace data = skein::data;

namespace {
const std::vector<float> images{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // (3, 2, 2)
const std::vector<double> table{0.5, 1.5, 2.5};                          // (3, 1)
const std::vector<int> labels{2, 0, 1};
const std::vector<std::array<float, 2>> values{{10, 11}, {20, 21}, {30, 31}};

auto joined() {
  return data::join(data::from_tensors(images, sk::Extents{3, {2, 2, 1}}, labels),
                    data::from_tensors(table, sk::Extents{1, {1}}),  //
                    data::from_tensors(values, std::vector<float>{7, 8, 9}));
}
}  // namespace

TEST_CASE("joined data sets serve their samples and targets one after the other", "[data]") {
  STATIC_REQUIRE(data::Dataset<decltype(joined())>);
  const auto set = joined();
  CHECK(set.size() == 3);
  CHECK(set.sample_extents() == sk::Extents{1, {7}});
  CHECK(set.target() == data::Target::vector(2));  // a class number and a value
  const std::vector<std::int64_t> order{2, 0};
  auto serve = [&]<class Scalar>(Scalar) {
    std::vector<Scalar> x(2 * 9, -1), y(2 * 3, -1);
    set.gather(order, x.data(), 9);
    set.targets(order, y.data(), 3);
    CHECK(x == std::vector<Scalar>{9, 10, 11, 12, 2.5, 30, 31, -1, -1, 1, 2, 3, 4, 0.5, 10, 11, -1, -1});
    CHECK(y == std::vector<Scalar>{1, 9, -1, 2, 7, -1});
  };
  serve(0.0f);
  serve(0.0);
}
TEST_CASE("a loader serves joined data sets, and changes within them see their own samples", "[data]") {
  auto negative = data::map(data::from_tensors(table, sk::Extents{1, {1}}), [](auto sample) {
    for (auto& v : sample) v = -v;
  });
  const auto set = data::join(negative, data::from_tensors(images, sk::Extents{3, {2, 2, 1}}, labels));
  data::Loader<float> loader(set, {.batch = 2, .shuffle = false});
  int served = 0;
  for (const data::Batch<float>& b : loader.epoch(0))
    for (long i = 0; i < b.count; ++i, ++served) {
      CHECK(b.row(i)[0] == -static_cast<float>(table[static_cast<std::size_t>(served)]));
      CHECK(b.row(i)[4] == images[static_cast<std::size_t>(4 * served + 3)]);
      CHECK(b.target(i)[0] == static_cast<float>(labels[static_cast<std::size_t>(served)]));
    }
  CHECK(served == 3);
}
TEST_CASE("joined data sets have as many samples each", "[data]") {
  const auto three = data::from_tensors(table, sk::Extents{1, {1}});
  CHECK_THROWS_WITH(data::join(three, three.take(2)), "data::join: one data set has 3 samples, another 2");
}

TEST_CASE("several labels a sample are as many values of the joined row") {
  sk::Tensor<float, 2> x(sk::dims(3, 2));
  sk::Tensor<std::int32_t, 2> y(sk::dims(3, 2));
  for (long i = 0; i < 6; ++i) x.data()[i] = 0, y.data()[i] = static_cast<std::int32_t>(i);
  const auto both = sk::data::join(sk::data::from_tensors(x, y), sk::data::from_tensors(x, std::vector<int>{7, 8, 9}));
  CHECK(both.target() == sk::data::Target::vector(3));
  const std::int64_t indices[] = {2, 0};
  float to[8];
  both.targets(sk::data::Indices(indices), to, 4);
  CHECK((to[0] == 4 && to[1] == 5 && to[2] == 9 && to[4] == 0 && to[5] == 1 && to[6] == 7));
}

TEST_CASE("sets that were split in different ways are not joined", "[data]") {
  std::vector<float> x;
  std::string csv = "a,b\n";
  for (int i = 0; i < 40; ++i) x.push_back(static_cast<float>(i)), csv += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  const auto one = data::from_tensors(x, sk::Extents{1, {1}}), two = data::from_tensors(x, sk::Extents{1, {1}});
  const auto refused = Catch::StartsWith(
      "data::join: the sets were split in different ways (another seed, another side, or sorted after the split), so that sample "
      "i of one does not belong to sample i of the other: join the whole sets and split what comes, split(join(a, b), 0.8); or "
      "give both splits the same seed");
  const auto left = data::split(one, 0.5, sk::Seed{1}), right = data::split(two, 0.5, sk::Seed{2});
  const auto same = data::split(two, 0.5, sk::Seed{1});
  CHECK_THROWS_WITH(data::join(left.first, right.first), refused);
  CHECK_THROWS_WITH(data::join(left.first, left.second), refused);
  CHECK_THROWS_WITH(data::join(left.first, data::map(right.first, [](std::span<float>) {})), refused);
  CHECK_THROWS_WITH(data::join(data::join(left.first, same.first), right.first), refused);
  CHECK_NOTHROW(data::join(left.first, same.first));
  CHECK_NOTHROW(data::join(left.second.normalize(1, 2), same.second));
  CHECK_NOTHROW(data::join(one, two));
  CHECK_NOTHROW(data::join(one.subset({0, 1}), two.subset({1, 0})));  // pairs that somebody wants
  const auto table = data::parse_csv(csv, "t");
  data::TableEncoder encoder;
  encoder.numbers({"a", "b"}).fit(table);
  const auto rows = data::split(table, 0.5, sk::Seed{1}), others = data::split(table, 0.5, sk::Seed{2});
  CHECK_THROWS_WITH(data::join(encoder.encode(rows.first), encoder.encode(others.first)), refused);
  CHECK_THROWS_WITH(data::join(left.first, encoder.encode(others.first)), refused);
  CHECK_NOTHROW(data::join(left.first, encoder.encode(rows.first)));  // pictures and their rows
}

TEST_CASE("a joined row of more values than an int counts is refused", "[data]") {
  struct Wide {
    std::int64_t size() const { return 1; }
    sk::Extents sample_extents() const { return {1, {2'200'000'000 / 2}}; }
    void read(std::int64_t, std::span<float>) const {}
  };
  CHECK_NOTHROW(data::join(Wide{}));
  CHECK_THROWS_WITH(data::join(Wide{}, Wide{}), Catch::StartsWith("data::join: a joined row would have 2200000000 values"));
  CHECK_THROWS_WITH(data::join(Wide{}, Wide{}, Wide{}, Wide{}),
                    Catch::StartsWith("data::join: a joined row would have 4400000000"));
}
