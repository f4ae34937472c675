// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/curvature_shares.hpp>

#include <algorithm>

#include <catch2/catch.hpp>

namespace plan = skein::plan;

namespace {
/// ResNet-20's convolutions and its last layer.
std::vector<plan::FactorSizes> resnet20() {
  std::vector<plan::FactorSizes> layers{{27, 16}};
  for (int i = 0; i < 6; ++i) layers.push_back({144, 16});
  for (int i = 0; i < 6; ++i) layers.push_back({i == 0 ? 144 : 288, 32});
  for (int i = 0; i < 6; ++i) layers.push_back({i == 0 ? 288 : 576, 64});
  layers.push_back({65, 10});
  return layers;
}
constexpr plan::FactorSizes three[] = {{20, 10}, {30, 5}, {4, 4}};
constexpr int first_to(int ranks, int workers) {
  return plan::share_curvature(three, {ranks, workers}).inverse_rank[2];  // the largest factor
}
// A plan is a constant of the program where shapes and ranks are. clang++ 14 takes no std::vector of libstdc++ 12 for one.
#ifndef __clang__
static_assert(first_to(4, 4) == 0 && first_to(4, 1) == 0);
#endif
static_assert(plan::worker_grid(8, 1, 2).workers == 4 && plan::worker_grid(7, 1, 2).workers == 1);
static_assert(plan::worker_grid(6, 1, 1).columns() == 1 && plan::worker_grid(6, 0, 1).columns() == 6);
static_assert(plan::worker_grid(6, 3, 4).workers == 3);
}  // namespace

TEST_CASE("The largest factor goes to the first rank", "[plan]") {
  REQUIRE(first_to(4, 4) == 0);
  REQUIRE(first_to(4, 1) == 0);
}

TEST_CASE("Each layer has the inverses of its column, and no rank of another one makes them", "[plan]") {
  const auto layers = resnet20();
  for (const int ranks : {1, 2, 3, 4, 6, 8})
    for (int workers = 1; workers <= ranks; ++workers) {
      if (ranks % workers != 0) continue;
      const auto shares = plan::share_curvature(layers, {ranks, workers});
      for (std::size_t i = 0; i < shares.inverse_rank.size(); ++i) {
        REQUIRE(shares.inverse_rank[i] < ranks);
        REQUIRE(shares.grid.column(shares.inverse_rank[i]) == shares.column[i / 2]);
      }
    }
}

TEST_CASE("Ranks as rows and columns, as in the picture of KAISA", "[plan]") {
  const plan::WorkerGrid grid{8, 2};  // columns {0, 4}, {1, 5}, {2, 6}, {3, 7}
  CHECK(grid.columns() == 4);
  CHECK((grid.column(5) == 1 && grid.row(5) == 1 && grid.column(3) == 3 && grid.row(3) == 0));
}

TEST_CASE("What ranks send: all inverses to all, all gradients to all, or some of both", "[plan]") {
  const auto layers = resnet20();
  long inverses = 0, gradients = 0;
  for (const auto& l : layers) inverses += l.a * l.a + l.g * l.g, gradients += l.a * l.g;
  for (const int workers : {1, 2, 4}) {
    const auto shares = plan::share_curvature(layers, {4, workers});
    long of_inverses = 0, of_gradients = 0;
    for (int rank = 0; rank < 4; ++rank) {
      of_inverses += plan::inverse_values(shares, layers, rank, {});
      of_gradients += plan::direction_values(shares, layers, rank);
    }
    CHECK(of_inverses == (workers > 1 ? inverses : 0));
    CHECK(of_gradients == (workers < 4 ? workers * gradients : 0));  // by each row
  }
}

TEST_CASE("The ranks' work is even", "[plan]") {
  const auto layers = resnet20();
  double total = 0;
  for (const auto& l : layers) total += static_cast<double>(l.a * l.a * l.a + l.g * l.g * l.g);
  const double largest = 576.0 * 576 * 576;
  for (const int workers : {1, 2, 4}) {
    const auto shares = plan::share_curvature(layers, {4, workers});
    for (int rank = 0; rank < 4; ++rank) {
      double load = 0;
      for (std::size_t i = 0; i < shares.inverse_rank.size(); ++i) {
        const double n = static_cast<double>(i % 2 == 0 ? layers[i / 2].a : layers[i / 2].g);
        if (shares.inverse_rank[i] == rank) load += n * n * n;
      }
      CHECK(load <= total / 4 + largest);
    }
  }
}
