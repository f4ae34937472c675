// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/chosen_all_reduce.hpp>
#include <skein/plan/collective_check.hpp>

#include <catch2/catch.hpp>

namespace plan = skein::plan;

TEST_CASE("a chosen algorithm is the table of that name", "[plan]") {
  const int ranks = GENERATE(1, 2, 3, 6, 8);
  const auto same = [&](plan::AllReduceChoice choice, const auto& table) {
    const plan::ChosenAllReduce chosen{ranks, 20, choice};
    REQUIRE(chosen.steps() == table.steps());
    const plan::CollectiveReport report = check(chosen), expected = check(table);
    CHECK(report.sound());
    CHECK(report.messages == expected.messages);
    CHECK(report.values == expected.values);
  };
  same({plan::AllReduceAlgorithm::ring}, plan::RingAllReduce{ranks, 20});
  same({plan::AllReduceAlgorithm::recursive_doubling}, plan::RecursiveDoubling{ranks, 20});
  same({plan::AllReduceAlgorithm::torus, plan::square_columns(ranks)},
       plan::TorusAllReduce{ranks, 20, plan::square_columns(ranks)});
  same({plan::AllReduceAlgorithm::hierarchical, 1, 2}, plan::HierarchicalAllReduce{ranks, 20, 2});
}
