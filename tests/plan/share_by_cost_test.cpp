// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/share_by_cost.hpp>

#include <numeric>

#include <catch2/catch.hpp>

namespace plan = skein::plan;

TEST_CASE("The largest piece goes first, each to the worker that has least", "[plan]") {
  CHECK((plan::share_by_cost(std::vector<double>{1, 5, 2, 2}, 2) == std::vector<int>{1, 0, 1, 1}));
  CHECK((plan::share_by_cost(std::vector<double>{3, 3, 3}, 1) == std::vector<int>{0, 0, 0}));
  CHECK(plan::share_by_cost(std::vector<double>{}, 4).empty());
}

TEST_CASE("No worker has more than the mean and one piece", "[plan]") {
  std::vector<double> costs;
  for (int i = 0; i < 40; ++i) costs.push_back(static_cast<double>((i * 37) % 41 + 1));
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (const int workers : {2, 3, 7}) {
    const std::vector<int> owner = plan::share_by_cost(costs, workers);
    for (int w = 0; w < workers; ++w) {
      double load = 0;
      for (std::size_t i = 0; i < costs.size(); ++i) load += owner[i] == w ? costs[i] : 0;
      CHECK(load <= total / workers + 41);
    }
  }
}
