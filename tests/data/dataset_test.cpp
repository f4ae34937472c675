// SPDX-License-Identifier: Apache-2.0
#include <skein/data/dataset.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>
#include <skein/data/moments.hpp>
#include <skein/data/normalize.hpp>
#include <skein/data/view.hpp>
#include <skein/tensor/tensor.hpp>

#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace sk::data;
using data_test::thrown;

namespace {
/// The smallest data set of one's own: x in R, y = x squared, computed when asked for.
struct Squares {
  std::int64_t size() const { return 100; }
  sk::Extents sample_extents() const { return {1, {1}}; }
  Target target() const { return Target::vector(1); }
  void gather(Indices indices, float* x, long pitch) const {
    for (const auto i : indices) *x = static_cast<float>(i) / 3, x += pitch;
  }
  void targets(Indices indices, float* y, long pitch) const {
    for (const auto i : indices) *y = static_cast<float>(i * i), y += pitch;
  }
};
struct Unlabelled {
  int size() const { return 3; }
  sk::Extents sample_extents() const { return {3, {2, 2, 1}}; }
  void gather(Indices indices, float* x, long pitch, std::int64_t epoch) const {
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (int j = 0; j < 4; ++j) x[static_cast<long>(i) * pitch + j] = static_cast<float>(100 * epoch + 10 * indices[i] + j);
  }
};
static_assert(Dataset<Squares> && Dataset<Unlabelled> && Dataset<InMemory<std::uint8_t>> && Dataset<Subset<Squares>>);
static_assert(!Dataset<int> && !Dataset<std::vector<float>>);
static_assert(std::is_convertible_v<const Squares&, DatasetView>);

std::vector<float> gathered(DatasetView view, std::vector<std::int64_t> indices, std::int64_t epoch = 0) {
  const long n = view.sample_extents().count();
  std::vector<float> x(indices.size() * static_cast<std::size_t>(n));
  view.gather(indices, x.data(), n, epoch);
  return x;
}
}  // namespace

TEST_CASE("a data set of one's own is seen through a view, in float and in double") {
  assert_dataset<Squares>();
  const Squares squares;
  const DatasetView view = squares;
  REQUIRE(view);
  CHECK_FALSE(DatasetView{});
  CHECK(view.size() == 100);
  CHECK(view.target() == Target::vector(1));
  const std::int64_t indices[] = {7, 2, 9};
  float x[9], y[3];
  view.gather(indices, x, 3);
  view.targets(indices, y, 1);
  CHECK(x[3] == 2.0f / 3);
  CHECK(y[2] == 81);
  double wide[9] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
  view.gather(indices, wide, 3);  // by way of float, in place
  CHECK(wide[0] == static_cast<double>(7.0f / 3));
  CHECK(wide[6] == static_cast<double>(3.0f));
  CHECK(wide[8] == -1);
  double targets[3];
  view.targets(indices, targets, 1);
  CHECK(targets[0] == 49);
}

namespace {
struct ReadLabelsAlone {
  std::int64_t size() const { return 2; }
  sk::Extents sample_extents() const { return {1, {1}}; }
  Target target() const { return Target::labels(2); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const { x[0] = 0, label = static_cast<std::int32_t>(i); }
};
}  // namespace

TEST_CASE("a view refuses what contradicts itself") {
  struct Liar : Squares {
    Target said;
    Target target() const { return said; }
  } liar;
  liar.said = Target::labels(3);
  CHECK(thrown([&] {
          (void)DatasetView(liar);
        }).says("says that its targets are labels, but has no labels(data::Indices, std::int32_t*) const"));
  liar.said = Target::vector(0);
  CHECK(thrown([&] { (void)DatasetView(liar); }).says("gives no length"));
  struct Uncounted : ReadLabelsAlone {
    Target target() const { return Target::labels(-3); }
  };
  CHECK(thrown([] {
          const Uncounted s;
          (void)DatasetView(s);
        }).says("says that it has -3 classes"));
  struct Shapeless : Squares {
    sk::Extents sample_extents() const { return {}; }
  };
  CHECK(thrown([] {
          const Shapeless s;
          (void)DatasetView(s);
        }).says("one to four positive extents"));
}

TEST_CASE("epochs reach data sets that ask for them") {
  CHECK(gathered(Unlabelled{}, {1}, 2) == std::vector<float>{210, 211, 212, 213});
  CHECK(gathered(subset(Unlabelled{}, {2, 0}), {0, 1}, 1)[0] == 120);
  CHECK(DatasetView(Unlabelled{}).target().kind == TargetKind::none);
}

TEST_CASE("in memory: bytes become numbers, normalised, as they are gathered") {
  const InMemory<std::uint8_t> bytes({1, {2}}, {0, 255, 51, 102}, std::vector<std::int32_t>{1, 4});
  CHECK(bytes.target() == Target::labels(5));
  CHECK(gathered(bytes, {1, 0})[1] == Approx(0.4));
  CHECK(gathered(bytes, {1, 0})[3] == Approx(1.0));
  const auto normal = bytes.normalize(0.5, 0.25);
  CHECK(gathered(normal, {0})[0] == Approx(-2));
  CHECK(gathered(normal, {0})[1] == Approx(2));
  const InMemory<float> floats({1, {1}}, {1, 2, 3});
  CHECK(gathered(floats.normalize(2, 0.5), {0, 2}) == std::vector<float>{-2, 2});
  CHECK(gathered(floats.normalize(2, 0.5).normalize(0, 1), {0, 2}) == std::vector<float>{1, 3});
  CHECK_THROWS_AS(floats.normalize(0, 0), sk::ArgumentError);
  const auto m = moments(bytes);
  CHECK(m.mean == Approx((0 + 1 + 0.2 + 0.4) / 4));
  CHECK(m.deviation == Approx(std::sqrt((0.16 + 0.36 + 0.04 + 0) / 4)));
  const auto again = moments(bytes.normalize(m.mean, m.deviation));
  CHECK(again.mean == Approx(0).margin(1e-6).epsilon(0));
  CHECK(again.deviation == Approx(1));
}

TEST_CASE("large values that differ little are normalised, and their moments found, without loss") {
  const std::vector<float> x{4e6f, 4e6f + 1, 4e6f, 4e6f + 1, 4e6f, 4e6f + 1};
  const InMemory<float> floats({1, {1}}, x), rows({1, {3}}, x);
  for (const auto& m : {moments(floats), moments(rows)}) {
    CHECK(m.mean == Approx(4e6 + 0.5).epsilon(1e-12));
    CHECK(m.deviation == Approx(0.5).epsilon(1e-9));
  }
  CHECK(moments(InMemory<float>({1, {1}}, std::vector<float>(1000, 101325.4f))).deviation == 0);
  CHECK(gathered(floats.normalize(4e6 + 0.5, 0.3), {1})[0] == Approx(0.5 / 0.3));
  CHECK(gathered(rows.normalize(4e6 + 0.5, 0.3), {1})[1] == Approx(-0.5 / 0.3));
  const InMemory<double> seconds({1, {1}}, {1.6e9, 1.6e9 + 20});
  CHECK(gathered(seconds.normalize(1.6e9 + 10, 10), {0, 1}) == std::vector<float>{-1, 1});
  std::vector<double> hundred;
  for (int i = 0; i < 100; ++i) hundred.push_back(1.7e9 + i);  // a float has every 128th of them
  const auto m = moments(InMemory<double>({1, {1}}, hundred));
  CHECK(m.mean == Approx(1.7e9 + 49.5).epsilon(1e-14));
  CHECK(m.deviation == Approx(std::sqrt(9999.0 / 12)).epsilon(1e-9));
  hundred[7] = std::nan("");
  CHECK_THROWS_WITH(moments(InMemory<double>({1, {1}}, hundred, sk::data::NonFinite::keep)),
                    "moments: a value of sample 7 is not finite");
}

TEST_CASE("take, slice, subset and split share the samples") {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 20; ++i) x.push_back(static_cast<float>(i)), labels.push_back(i % 3);
  const InMemory<float> all({1, {1}}, x, labels);
  CHECK(all.take(5).size() == 5);
  CHECK(all.take(50).size() == 20);
  CHECK(all.slice(5, 9).take(2).size() == 2);
  CHECK(all.slice(5, 9).stored(0) == all.stored(5));
  CHECK(gathered(all.slice(5, 9), {3}) == std::vector<float>{8});
  CHECK(all.slice(5, 9).label(0) == 2);
  CHECK(thrown([&] { all.slice(5, 21); }).text == "slice: [5, 21) is not within a data set of 20 samples");
  const auto chosen = all.slice(10, 20).subset({9, 0, 0});
  CHECK(gathered(chosen, {0, 1, 2}) == std::vector<float>{19, 10, 10});
  const std::int64_t first[] = {0};
  std::int32_t label[1];
  DatasetView(chosen).labels(first, label);
  CHECK(label[0] == 1);
  CHECK(thrown([&] { all.subset({20}); }).text == "subset: index 20 is outside a data set of 20 samples");
  CHECK(thrown([&] { split(all, 80); }).text ==
        "split: the fraction is 80: give the share of the first part, from 0 to 1, as in split(set, 0.8)");
  const auto [train, validation] = split(all, 0.75, {3});
  CHECK(train.size() == 15);
  CHECK(validation.size() == 5);
  std::vector<int> seen(20, 0);
  for (std::int64_t i = 0; i < 15; ++i) ++seen[static_cast<std::size_t>(gathered(train, {i})[0])];
  for (std::int64_t i = 0; i < 5; ++i) ++seen[static_cast<std::size_t>(gathered(validation, {i})[0])];
  CHECK(seen == std::vector<int>(20, 1));
  std::vector<std::int64_t> many(1000);  // more than one piece of the translation
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i % 20);
  const auto repeated = all.subset(many);
  std::vector<std::int64_t> every(1000);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::int64_t>(i);
  const auto values = gathered(repeated, every);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<float>(i % 20));
}

TEST_CASE("a slice of any data set is its samples from one to before another") {
  const auto part = slice(Unlabelled{}, 1, 3);
  CHECK(part.size() == 2);
  CHECK(gathered(part, {0, 1}, 1) == gathered(Unlabelled{}, {1, 2}, 1));
  CHECK(slice(part, 2, 2).size() == 0);
  CHECK(thrown([] { slice(Unlabelled{}, 2, 9); }).text == "slice: samples 2 to 9 of a data set of 3 samples");
  CHECK(thrown([] { slice(Unlabelled{}, 2, 1); }).text == "slice: samples 2 to 1 of a data set of 3 samples");
}

TEST_CASE("map changes samples in place, by index and epoch if it wants to") {
  const InMemory<float> all({1, {2}}, {1, 2, 3, 4}, std::vector<std::int32_t>{0, 1});
  const auto doubled = map(all, [](auto sample) {
    for (auto& v : sample) v *= 2;
  });
  CHECK(gathered(doubled, {1, 0}) == std::vector<float>{6, 8, 2, 4});
  const auto keyed = map(doubled, [](std::span<float> sample, std::int64_t index, std::int64_t epoch) {
    sample[0] = static_cast<float>(index * 10 + epoch);
  });
  CHECK(gathered(keyed, {1}, 5) == std::vector<float>{15, 8});
  CHECK(DatasetView(keyed).target() == Target::labels(2));
  const std::int64_t one[] = {1};
  double wide[2];
  DatasetView(keyed).gather(one, wide, 2, 4);  // a function of floats serves double by way of float
  CHECK(wide[0] == 14);
  CHECK(wide[1] == 8);
}

TEST_CASE("data sets out of arrays: functions of one variable, of several, and class numbers") {
  const auto line = from_tensors(std::vector<float>{1, 2, 3}, std::vector<float>{2, 4, 6});
  CHECK(line.size() == 3);
  CHECK(line.sample_extents() == sk::Extents{1, {1}});
  CHECK(line.target() == Target::vector(1));
  const std::int64_t last_first[] = {1, 0};
  float values[4] = {-1, -1, -1, -1}, answers_of[4] = {-1, -1, -1, -1};
  const auto part = line.slice(1, 3);
  DatasetView(part).gather(last_first, values, 2);
  DatasetView(part).targets(last_first, answers_of, 3);
  CHECK((values[0] == 3 && values[1] == -1 && values[2] == 2 && values[3] == -1));
  CHECK((answers_of[0] == 6 && answers_of[1] == -1 && answers_of[2] == -1 && answers_of[3] == 4));
  const auto exact = from_tensors(std::vector<double>{0.1}, std::vector<double>{0.2});
  const std::int64_t zero[] = {0};
  double x[1], y[1];
  DatasetView(exact).gather(zero, x, 1);
  DatasetView(exact).targets(zero, y, 1);
  CHECK(x[0] == 0.1);  // double all the way
  CHECK(y[0] == 0.2);
  const std::vector<std::array<float, 2>> points{{1, 2}, {3, 4}};
  const auto plane = from_tensors(points, std::vector<int>{0, 2});
  CHECK(plane.sample_extents() == sk::Extents{1, {2}});
  CHECK(plane.target() == Target::labels(3));
  CHECK(gathered(plane, {1}) == std::vector<float>{3, 4});
  const auto images = from_tensors(std::vector<std::uint8_t>(24, 255), {3, {2, 2, 3}}, std::vector<std::int64_t>{1, 0});
  CHECK(images.size() == 2);
  CHECK(gathered(images, {0})[11] == Approx(1));
  CHECK(from_tensors(std::span<const float>(points[0]), sk::Extents{1, {2}}).size() == 1);
  const sk::Tensor<float, 2> table{{1, 2, 3}, {4, 5, 6}};
  const sk::Tensor<float, 1> answers{7, 8};
  const auto rows = from_tensors(table, answers);
  CHECK(rows.sample_extents() == sk::Extents{1, {3}});
  CHECK(gathered(rows, {1}) == std::vector<float>{4, 5, 6});
  CHECK(rows.target() == Target::vector(1));
  const auto columns = from_tensors(table.view().transpose(), std::vector<int>{0, 1, 1});
  CHECK(gathered(columns, {2}) == std::vector<float>{3, 6});
  CHECK(thrown([] {
          from_tensors(std::vector<float>{1, 2, 3}, std::vector<int>{1});
        }).says("a data set in memory: 3 samples need 3 labels, 1 are given"));
  CHECK(thrown([] {
          from_tensors(std::vector<float>{1, 2, 3}, {1, {2}}, std::vector<int>{1});
        }).says("no whole number of samples of 2 values"));
  CHECK(thrown([] {
          from_tensors(std::vector<float>{1, 2}, std::vector<float>{1, 2, 3});
        }).text == "from_tensors: 3 target values cannot belong to 2 samples");
}

TEST_CASE("targets in rows are one row for each sample, also where their number could be divided otherwise") {
  const auto six = sk::Tensor<float, 2>(sk::dims(6, 5));
  const std::string sentence = "from_tensors: y has 3 rows, and x 6 samples: give a row of y for each sample";
  CHECK(thrown([&] { from_tensors(six, sk::Tensor<float, 2>(sk::dims(3, 4))); }).text == sentence);
  CHECK(thrown([&] { from_tensors(six, std::vector<std::array<float, 4>>(3)); }).text == sentence);
  CHECK(thrown([&] { from_tensors(six, sk::Tensor<std::int32_t, 2>(sk::dims(3, 4))); }).text == sentence);
  CHECK(thrown([&] { from_tensors(six, sk::Tensor<std::int32_t, 2>(sk::dims(12, 1))); }).says("y has 12 rows"));
  CHECK(from_tensors(six, sk::Tensor<float, 2>(sk::dims(6, 4))).target() == Target::vector(4));
  CHECK(from_tensors(six, std::vector<float>(12)).target() == Target::vector(2));  // a plain list
  CHECK(from_tensors(sk::Tensor<float, 2>(sk::dims(0, 5)), sk::Tensor<float, 2>(sk::dims(0, 4))).size() == 0);
}

TEST_CASE("extents are positive one by one, and not by their product") {
  CHECK(thrown([] {
          (void)InMemory<float>(sk::Extents{2, {-2, -3}}, std::vector<float>(12));
        }).says("one to four positive numbers"));
  struct Turned : Squares {
    sk::Extents sample_extents() const { return {2, {-1, -3}}; }
  };
  CHECK(thrown([] {
          const Turned s;
          (void)DatasetView(s);
        }).says("one to four positive extents"));
  const std::vector<float> x(56), y(1);
  for (const sk::Extents forgotten : {sk::Extents{28, 2}, sk::Extents{4}, sk::Extents{1, 28, 2}})  // their count
    CHECK(thrown([&] { from_tensors(x, forgotten, y); }).says("behind their count: sk::Extents{3, {28, 28, 1}} of an image"));
}

namespace {
/// Sets that bring a sample with what belongs to it, and count how often they are asked.
struct ReadCounts {
  mutable long reads = 0;
  std::int64_t size() const { return 20; }
  sk::Extents sample_extents() const { return {1, {2}}; }
  static void fill(std::int64_t i, std::span<float> x) { x[0] = static_cast<float>(i), x[1] = static_cast<float>(-i); }
};
struct ReadLabels : ReadCounts {
  Target target() const { return Target::labels(3); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    ++reads, fill(i, x), label = static_cast<std::int32_t>(i % 3);
  }
};
struct ReadVectors : ReadCounts {
  Target target() const { return Target::vector(3); }
  void read(std::int64_t i, std::span<float> x, std::span<float> y) const {
    ++reads, fill(i, x);
    for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<float>(10 * i + static_cast<std::int64_t>(k));
  }
};
struct ReadAlone : ReadCounts {
  void read(std::int64_t i, std::span<float> x) const { ++reads, fill(i, x); }
};
struct WholeBatch : ReadCounts {
  Target target() const { return Target::labels(3); }
  void serve(Indices indices, const Destination<float>& to) const {
    ++reads;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (to.x) fill(indices[i], {to.x + static_cast<long>(i) * to.pitch, 2});
      if (to.labels) to.labels[i] = static_cast<std::int32_t>(indices[i] % 3);
    }
  }
};
struct ReadsWithoutTarget : ReadCounts {
  void read(std::int64_t, std::span<float>, std::int32_t&) const {}
};
static_assert(Dataset<ReadLabels> && Dataset<ReadVectors> && Dataset<ReadAlone> && Dataset<WholeBatch> &&
              !Dataset<ReadsWithoutTarget>);
static_assert(Dataset<Subset<ReadLabels>> && !HasTargets<Subset<ReadLabels>> && HasLabels<Subset<ReadLabels>> &&
              HasTargets<Subset<ReadVectors>>);

/// Samples 7, 3 and 4 by one call; gaps stay as they are.
template <class Scalar> void serves(DatasetView view, const long& reads, long expected_reads) {
  const std::int64_t wanted[] = {7, 3, 4};
  Scalar x[9], y[12];
  for (Scalar& v : x) v = 99;
  for (Scalar& v : y) v = 99;
  std::int32_t labels[3] = {-1, -1, -1};
  const bool vectors = view.target().kind == TargetKind::vector, classes = view.target().kind == TargetKind::label;
  const long before = reads;
  view.serve(wanted, Destination<Scalar>{x, 3, classes ? labels : nullptr, vectors ? y : nullptr, 4, 0});
  CHECK(reads - before == expected_reads);
  for (int i = 0; i < 3; ++i) {
    CHECK(x[3 * i] == static_cast<Scalar>(wanted[i]));
    CHECK(x[3 * i + 1] == static_cast<Scalar>(-wanted[i]));
    if (std::is_same_v<Scalar, float>) CHECK(x[3 * i + 2] == 99);
    CHECK(labels[i] == (classes ? wanted[i] % 3 : -1));
    for (int k = 0; k < 3; ++k) CHECK(y[4 * i + k] == (vectors ? static_cast<Scalar>(10 * wanted[i] + k) : 99));
  }
}
}  // namespace

TEMPLATE_TEST_CASE("a set that brings samples and targets in one call is asked once a sample", "", float, double) {
  const ReadLabels labels;
  serves<TestType>(labels, labels.reads, 3);
  const ReadVectors vectors;
  serves<TestType>(vectors, vectors.reads, 3);
  const ReadAlone alone;
  serves<TestType>(alone, alone.reads, 3);
  const WholeBatch whole;
  serves<TestType>(whole, whole.reads, 1);
  const Squares pieces;  // the other kind: pieces of one call
  const std::int64_t nine[] = {9};
  TestType x, y;
  DatasetView(pieces).serve(nine, Destination<TestType>{&x, 1, nullptr, &y, 1, 0});
  CHECK((x == 3 && y == 81));
}

TEST_CASE("wrappers pass the one call on, and labels can be asked for alone") {
  const std::int64_t last_first[] = {1, 0};
  std::int32_t labels[2];
  const Subset<ReadLabels> chosen(ReadLabels{}, {7, 5});
  DatasetView(chosen).labels(last_first, labels);
  CHECK((labels[0] == 2 && labels[1] == 1));
  chosen.labels(last_first, labels);
  CHECK((labels[0] == 2 && labels[1] == 1));
  float y[6];
  DatasetView(Subset<ReadVectors>(ReadVectors{}, {7, 5})).targets(last_first, y, 3);
  CHECK((y[0] == 50 && y[5] == 72));
  const auto doubled = map(chosen, [](std::span<float> sample) {
    for (float& v : sample) v *= 2;
  });
  CHECK(gathered(doubled, {0, 1}) == std::vector<float>{14, -14, 10, -10});
  float x[4];
  DatasetView(doubled).serve(last_first, {x, 2, labels, nullptr, 0, 0});
  CHECK((x[0] == 10 && x[2] == 14 && labels[0] == 2));
  double wide[4], exact[1];
  DatasetView(doubled).serve(last_first, {wide, 2, labels, nullptr, 0, 0});
  CHECK((wide[0] == 10 && wide[3] == -14 && labels[1] == 1));
  const auto rounded =
      map(from_tensors(std::vector<double>{0.5}, std::vector<double>{0.1}), [](std::span<float> sample) { sample[0] += 1; });
  const std::int64_t zero[] = {0};
  DatasetView(rounded).serve(zero, {wide, 1, nullptr, exact, 1, 0});
  CHECK((wide[0] == 1.5 && exact[0] == 0.1));  // what the function does not touch is double all the way
}

namespace {
/// Three numbers and what follows each of them.
struct ReadManyLabels {
  std::int64_t size() const { return 20; }
  sk::Extents sample_extents() const { return {1, {3}}; }
  Target target() const { return Target::labels(30, 3); }
  void read(std::int64_t i, std::span<float> x, std::span<std::int32_t> labels) const {
    for (std::size_t k = 0; k < 3; ++k)
      x[k] = static_cast<float>(i + static_cast<long>(k)), labels[k] = static_cast<std::int32_t>(x[k]) + 1;
  }
};
static_assert(Dataset<ReadManyLabels> && gives_labels<ReadManyLabels> && !gives_targets<ReadManyLabels>);
std::vector<std::int32_t> labels_of(DatasetView view, std::vector<std::int64_t> indices) {
  std::vector<std::int32_t> labels(indices.size() * static_cast<std::size_t>(view.target().each));
  view.labels(indices, labels.data());
  return labels;
}
}  // namespace

TEST_CASE("several labels a sample: in memory, read one by one, and through what wraps a set") {
  const std::vector<std::int32_t> expected{8, 9, 10, 6, 7, 8};
  CHECK(labels_of(ReadManyLabels{}, {7, 5}) == expected);
  CHECK(gathered(ReadManyLabels{}, {7, 5}) == std::vector<float>{7, 8, 9, 5, 6, 7});
  CHECK(labels_of(Subset<ReadManyLabels>(ReadManyLabels{}, {5, 6, 7}), {2, 0}) == expected);

  sk::Tensor<float, 2> x(sk::dims(400, 3));
  sk::Tensor<std::int32_t, 2> y(sk::dims(400, 3));
  std::vector<std::array<std::int32_t, 3>> rows;
  for (long i = 0; i < 400; ++i) {
    for (long k = 0; k < 3; ++k) x(i, k) = static_cast<float>(i + k), y(i, k) = static_cast<std::int32_t>(i + k) + 1;
    rows.push_back({y(i, 0), y(i, 1), y(i, 2)});
  }
  const auto data = from_tensors(x, y);
  CHECK(data.target() == Target::labels(403, 3));
  CHECK(data.label(7, 2) == 10);
  CHECK(labels_of(data, {7, 5}) == expected);
  CHECK(labels_of(data.slice(4, 9), {3, 1}) == expected);
  CHECK(labels_of(from_tensors(x, rows), {7, 5}) == expected);
  CHECK(labels_of(map(data, [](std::span<float>) {}), {7, 5}) == expected);
  std::vector<std::int64_t> backward(400), all(400);  // more than a subset translates at a time
  for (std::size_t i = 0; i < 400; ++i) all[i] = static_cast<std::int64_t>(i), backward[i] = 399 - all[i];
  const auto reversed = labels_of(data.subset(backward), all);
  CHECK((reversed[0] == 400 && reversed[1199] == 3 && reversed[3 * 300] == 100));
  CHECK_THROWS_WITH(InMemory<float>({1, {3}}, std::vector<float>(6), std::vector<std::int32_t>(2), 0, 3),
                    Catch::Contains("2 samples need 6 labels, 2 are given"));
}

TEST_CASE("classes are counted, and a label beyond those that are said is refused") {
  const std::vector<float> x(4);
  const auto set = [&](std::vector<int> labels, int classes) { return InMemory<float>({1, {1}}, x, std::move(labels), classes); };
  CHECK(set({0, 4, -1, 2}, 0).target() == Target::labels(5));
  CHECK(set({0, 4, -1, 2}, 7).target() == Target::labels(7));
  CHECK(set({-1, -1, -1, -1}, 0).target() == Target::labels(0));
  CHECK(thrown([&] { set({0, 4, -1, 2}, 4); }).text == "a data set: label 4 (number 1) is not below the number of classes, 4");
  CHECK(thrown([&] { set({0, 1, 2, 3}, -3); }).says("-3 classes"));
  CHECK(thrown([&] { set({0, 2147483647, 2, 3}, 0); }).says("is not below the greatest number of classes"));
  CHECK(thrown([&] { set({0, 1, 2, 3}, 0).take(-3); }).says("take: -3 samples"));
}

TEST_CASE("flat rows without extents: the message says how to give them") {
  const std::vector<float> rows(30);
  CHECK(thrown([&] { from_tensors(rows, std::vector<int>(10)); }).text ==
        "a data set in memory: 30 samples need 30 labels, 10 are given: if a sample has 3 values, say so: "
        "from_tensors(x, sk::Extents{1, {3}}, y)");
  CHECK(thrown([&] { from_tensors(rows, std::vector<float>(10)); }).text ==
        "from_tensors: 10 target values cannot belong to 30 samples: if a sample has 3 values, say so: "
        "from_tensors(x, sk::Extents{1, {3}}, y)");
  CHECK(from_tensors(rows, sk::Extents{1, {3}}, std::vector<float>(10)).size() == 10);
  CHECK(thrown([&] { from_tensors(rows, std::vector<float>{}); }).says("0 target values cannot belong to 30 samples"));
}

namespace {
struct Counted {  // of values that are destroyed with it
  std::shared_ptr<int> alive = std::make_shared<int>(7);
  std::int64_t size() const { return 3; }
  sk::Extents sample_extents() const { return {1, {1}}; }
  void gather(Indices indices, float* x, long) const {
    for (std::size_t i = 0; i < indices.size(); ++i) x[i] = static_cast<float>(*alive);
  }
};
}  // namespace

TEST_CASE("a view keeps a data set that is made in place, and refers to one that has a name") {
  std::weak_ptr<int> alive;
  {
    DatasetView view = [&] {
      Counted made;
      alive = made.alive;
      return made;
    }();
    CHECK(alive.use_count() == 1);
    const DatasetView copy = view;
    view = {};
    REQUIRE_FALSE(alive.expired());
    CHECK(gathered(copy, {1}) == std::vector<float>{7});
  }
  CHECK(alive.expired());
  const Counted named;
  const DatasetView view = named;
  CHECK(named.alive.use_count() == 1);  // not copied
  CHECK(gathered(from_tensors(std::vector<float>{1, 2}, std::vector<int>{0, 1}), {1}) == std::vector<float>{2});
}

TEST_CASE("what was moved from is as it was: chosen samples, a view and the data set that it keeps") {
  const InMemory<float> all({1, {1}}, {1, 2, 3, 4});
  auto chosen = all.subset({3, 1});
  const auto moved = std::move(chosen);
  CHECK((moved.size() == 2 && chosen.size() == 2));
  CHECK(gathered(chosen, {0, 1}) == std::vector<float>{4, 2});
  DatasetView view = all.subset({2});
  {
    const DatasetView other = std::move(view);
    CHECK(other.size() == 1);
  }
  CHECK(gathered(view, {0}) == std::vector<float>{3});
}

TEST_CASE("values that are infinite or not a number do not become a data set unless asked for") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double large = 1e39;
  const std::vector<float> plain{1, 2, 3, 4, 5, 6};
  auto x = plain;
  x[4] = nan;
  CHECK(thrown([&] {
          from_tensors(x, sk::Extents{1, {2}}, std::vector<int>{0, 1, 0});
        }).text ==
        "a data set in memory: value 0 of sample 2 is nan: correct it; if such values are intended, give "
        "data::NonFinite::keep as the last argument");
  CHECK(thrown([&] {
          from_tensors(plain, sk::Extents{1, {3}}, std::vector<double>{1, -large});
        }).says("target value 0 of sample 1 is -inf (a float holds numbers up to 3.4e38)"));
  CHECK(thrown([&] { from_tensors(std::vector<double>{1, HUGE_VAL}, sk::Extents{1, {2}}); }).says("value 1 of sample 0 is inf"));
  CHECK(thrown([&] { InMemory<float>({1, {2}}, x); }).says("value 0 of sample 2 is nan"));
  const auto kept = from_tensors(x, sk::Extents{1, {2}}, std::vector<int>{0, 1, 0}, NonFinite::keep);
  CHECK(std::isnan(gathered(kept, {2})[0]));
  CHECK(kept.non_finite() == NonFinite::keep);
  CHECK(subset(kept, {0, 1}).non_finite() == NonFinite::keep);
  CHECK(from_tensors(plain, plain).non_finite() == NonFinite::absent);  // nobody looks again
  CHECK(
      from_tensors(std::vector<double>{1, large}, plain.size() > 0 ? std::vector<int>{0, 1} : std::vector<int>{}).non_finite() ==
      NonFinite::refuse);  // a float cannot hold it, a double can
  CHECK(map(from_tensors(plain, plain), [](auto) {}).non_finite() == NonFinite::refuse);

  const InMemory<std::uint8_t> bytes({1, {2}}, {0, 255});
  CHECK(bytes.normalize(0.1, 0.3).non_finite() == NonFinite::absent);
  CHECK(thrown([&] { bytes.normalize(33.3, 78.5); }).says("normalize: bytes are served as byte / 255, from 0 to 1"));
  CHECK(thrown([&] { bytes.normalize(0, 255); }).says("divide those of the bytes by 255"));
  CHECK(thrown([&] { bytes.normalize(0.1, 1e-40); }).says("normalize: a mean of 0.1 and a deviation of 1e-40 make"));
  CHECK(
      thrown([&] { bytes.normalize(HUGE_VAL, 1); }).says("normalize: the mean is inf and the deviation 1: both must be finite"));
  CHECK(thrown([&] { bytes.normalize(0, std::nan("")); }).says("normalize: the deviation is nan, it must be positive"));
}

TEST_CASE("the greatest magnitude is that of every value, wherever it stands") {
  std::vector<float> x(1000, 0.5f);
  std::vector<double> y(1000, -0.25);
  const auto most = [](const auto& v, std::size_t n) { return detail::greatest_magnitude(std::span(v).first(n)); };
  CHECK((most(x, 1000) == 0.5f && most(y, 1000) == 0.25 && most(x, 0) == 0));
  for (const std::size_t n : {1u, 31u, 32u, 33u, 200u, 1000u})
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      x[at] = -3, y[at] = 4;
      CHECK((most(x, n) == 3 && most(y, n) == 4));
      x[at] = -HUGE_VALF, y[at] = std::nan("");
      CHECK_FALSE(detail::finite(most(x, n)));
      CHECK_FALSE(detail::finite(most(y, n)));
      CHECK(detail::first_not_finite(std::span<const float>(x).first(n)) == static_cast<long>(at));
      x[at] = 0.5f, y[at] = -0.25;
    }
}

TEST_CASE("what split returned can be normalised, and so can any set") {
  const InMemory<std::uint8_t> bytes({1, {1}}, {0, 51, 102, 255});
  const auto train = split(bytes, 0.5).first;
  const auto whole = bytes.normalize(0.2, 0.5);
  const auto own = train.normalize(0.2, 0.5);
  CHECK(own.size() == 2);
  CHECK(own.non_finite() == NonFinite::absent);
  for (std::int64_t i = 0; i < 2; ++i) {
    const float before = gathered(train, {i})[0], after = gathered(own, {i})[0];
    CHECK(after == Approx((before - 0.2f) / 0.5f).margin(1e-6).epsilon(0));  // 51 / 255 cancels against 0.2
  }
  const auto squares = split(Squares{}, 0.5).first;  // a set without a normalize() of its own
  const auto served = squares.normalize(1, 2);
  CHECK(gathered(served, {3})[0] == Approx((gathered(squares, {3})[0] - 1) / 2));
  CHECK(served.target() == Target::vector(1));
  CHECK(gathered(normalize(map(bytes, [](auto) {}), 0.2, 0.5), {3})[0] == Approx(gathered(whole, {3})[0]));
  CHECK(thrown([&] { train.normalize(0, 0); }).says("normalize: the deviation is 0, it must be positive"));
}

namespace {
/// Three tokens a sample, and labels of which it writes none.
struct ForgetsLabels {
  std::int64_t size() const { return 2; }
  sk::Extents sample_extents() const { return {1, {3}, true}; }
  sk::data::Target target() const { return sk::data::Target::labels(5, 3); }
  void gather(sk::data::Indices indices, std::int32_t* x, long pitch) const {
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (long t = 0; t < 3; ++t) x[static_cast<long>(i) * pitch + t] = 1;
  }
  void labels(sk::data::Indices, std::int32_t*) const {}
};
}  // namespace

TEST_CASE("labels of tokens that a set leaves out are no remains of another batch", "[data]") {
  const ForgetsLabels set;
  const sk::data::DatasetView view(set);
  const std::vector<std::int64_t> both{0, 1};
  std::vector<std::int32_t> x(6), labels(6, 4);
  view.serve(both, sk::data::Destination<std::int32_t>{.x = x.data(), .pitch = 3, .labels = labels.data()});
  CHECK(labels.front() == sk::data::unwritten_label);
  CHECK(labels.back() == sk::data::unwritten_label);
}
