// SPDX-License-Identifier: Apache-2.0
// The bodies of state.hpp.
#pragma once
#include "state.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE std::vector<std::string> names_of(std::span<const plan::PathPart> paths, std::span<const plan::Entry> entries) {
  std::vector<std::string> names;
  for (const plan::Entry& e : entries) names.emplace_back(std::string_view(plan::name_of(paths, e)));
  return names;
}

SKEIN_INLINE std::vector<ParameterGroupRange> resolve(const Groups& groups, std::span<const plan::Entry> entries,
                                                      std::span<const std::string> names) {
  std::vector<ParameterEntry> table;
  for (const plan::Entry& e : entries) table.push_back({names[table.size()], e.offset, e.offset + e.stored, e.decay});
  return resolve(groups, table);
}

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
