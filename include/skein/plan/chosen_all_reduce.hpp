// SPDX-License-Identifier: Apache-2.0
// An all-reduce whose algorithm is a value: what cheapest_all_reduce chose, as a table that an interpreter runs.
#pragma once
#include "alpha_beta.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// The table of a choice. Each call looks the algorithm up, which a message outweighs.
struct ChosenAllReduce {
  static constexpr std::string_view name = "chosen by size";
  int ranks = 1;
  long count = 0;
  AllReduceChoice choice{};

  constexpr int steps() const {
    return with_table(choice, ranks, count, [](const auto& table) { return table.steps(); });
  }
  constexpr CollectiveStep at(int rank, int step) const {
    return with_table(choice, ranks, count, [&](const auto& table) { return table.at(rank, step); });
  }
};
static_assert(CollectiveTable<ChosenAllReduce>);

}  // namespace skein::inline SKEIN_ABI::plan
