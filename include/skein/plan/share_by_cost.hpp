// SPDX-License-Identifier: Apache-2.0
// Pieces of work of unequal cost, shared out: the rule of KAISA (Pauloski et al., SC 2021) for the factors of K-FAC.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Who of `workers` does which of these pieces of work: the largest first, each to him who has least.
constexpr std::vector<int> share_by_cost(std::span<const double> costs, int workers) {
  std::vector<std::size_t> order(costs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return costs[a] != costs[b] ? costs[a] > costs[b] : a < b; });
  std::vector<double> load(static_cast<std::size_t>(workers), 0);
  std::vector<int> owner(costs.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += costs[i];
    owner[i] = static_cast<int>(least - load.begin());
  }
  return owner;
}

}  // namespace skein::inline SKEIN_ABI::plan
