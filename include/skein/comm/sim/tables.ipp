// SPDX-License-Identifier: Apache-2.0
// The bodies of tables.hpp.
#pragma once
#include "../../core/error.hpp"
#include "../../core/text.hpp"
#include "tables.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void check_links(const char* who, const plan::Network& links) {
  for (const double seconds : {links.near.alpha, links.near.beta, links.far.alpha, links.far.beta, links.gamma})
    if (!is_time(seconds))
      throw ArgumentError(
          text("{}: a message, a byte or its sum takes {} seconds on the network: give finite ones, 0 or more", who, seconds));
}

SKEIN_INLINE double seconds_of(const CollectiveCall& o, int n, const plan::Network& network) {
  const double element = static_cast<double>(o.signature.element);
  std::vector<double> clock(static_cast<std::size_t>(n), 0.0);
  with_table_of(o, n, plan::cheapest_all_reduce(network, n, static_cast<double>(o.bytes(o.signature.count))),
                [&](const auto& table) {
                  plan::play_from(
                      table, clock,
                      [&](int from, int to, long values, int) {
                        const plan::Level& level = network.between(from, to);
                        return level.alpha + level.beta * element * static_cast<double>(values);
                      },
                      [&](long values) { return network.gamma * element * static_cast<double>(values); });
                });
  return *std::max_element(clock.begin(), clock.end());
}

}  // namespace skein::inline SKEIN_ABI::comm
