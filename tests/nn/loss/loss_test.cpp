// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/loss/loss.hpp>

using namespace skein;

namespace {
// A loss of a user: the mean absolute error.
struct Absolute {
  static constexpr nn::TargetKind target = nn::TargetKind::vector;
  template <class Scalar> double weight(const nn::LossCall<Scalar, Cpu>& call) const { return static_cast<double>(call.count); }
  template <class Scalar> nn::LossSums operator()(const nn::LossCall<Scalar, Cpu>& call) const {
    return {static_cast<double>(call.outputs[0] - call.targets[0]), 1, 0};
  }
};
// One that compares with nothing.
struct WithoutTargets : Absolute {
  static constexpr nn::TargetKind target = nn::TargetKind::none;
};
struct Silent {
  template <class Scalar> nn::LossSums operator()(const nn::LossCall<Scalar, Cpu>&) const { return {}; }
};
}  // namespace

TEST_CASE("The loss concept takes a user's own type and no less", "[loss]") {
  nn::assert_loss<Absolute>();
  STATIC_REQUIRE(nn::Loss<Absolute>);
  STATIC_REQUIRE_FALSE(nn::Loss<Silent>);
  STATIC_REQUIRE_FALSE(nn::Loss<WithoutTargets>);
  STATIC_REQUIRE_FALSE(nn::Loss<int>);
}

TEST_CASE("Sums of slices add up, and divide at the end", "[loss]") {
  nn::LossSums a{3, 2, 1};
  a += nn::LossSums{1, 2, 0};
  CHECK(a.loss == 4);
  CHECK(a.weight == 4);
  CHECK(a.correct == 1);
  CHECK(a.mean() == 1);
  CHECK(nn::LossSums{}.mean() == 0);
}

TEST_CASE("check_labels names the first wrong label with its place in the batch", "[loss]") {
  const std::int32_t labels[] = {0, 9, 10, -2};
  CHECK_NOTHROW(nn::check_labels(labels, 2, 10));
  CHECK_THROWS_WITH(nn::check_labels(labels, 4, 10, {}, 100),
                    Catch::Contains("sample 102 has the label 10; the network has 10 outputs"));
  CHECK_THROWS_WITH(nn::check_labels(labels + 3, 1, 10, -1), Catch::Contains("or -1, which is ignored"));
  CHECK_NOTHROW(nn::check_labels(labels + 3, 1, 10, -2));
  CHECK_THROWS_WITH(nn::check_labels(labels, 4, 10, {}, 300, 4),
                    Catch::Contains("sample 75 has the label 10 at position 2; the network has 10 outputs"));
}

TEST_CASE("Labels of a sample are those of its positions: all extents of the output but the last", "[loss]") {
  STATIC_REQUIRE(nn::labels_each({1, {10}}) == 1);
  STATIC_REQUIRE(nn::labels_each({2, {7, 10}}) == 7);
  STATIC_REQUIRE(nn::labels_each({3, {4, 6, 3}}) == 24);
  STATIC_REQUIRE(nn::rows_of_sample<Absolute>({2, {7, 10}}) == 1);  // compares with targets
  CHECK(nn::expected_weight<Absolute>({2, {7, 10}}, 3) == 210);
  CHECK_NOTHROW(nn::check_labels_each(7, 7));
  CHECK_THROWS_WITH(nn::check_labels_each(1, 7), Catch::Contains("1 labels a sample, the network's output 7 positions"));
}
