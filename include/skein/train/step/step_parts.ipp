// SPDX-License-Identifier: Apache-2.0
// The bodies of step_parts.hpp.
#pragma once
#include "step_parts.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE void check_placement(const plan::Placement& p, const plan::ArenaTable& table, bool owns_part) {
  if (!owns_part && p.kind() == plan::PlacementKind::sliced)
    throw ArgumentError(
        "the policy's placement is in slices and its state declares no Capability::owns_part, so that no rank would get the "
        "weights of the others");
  if (table.whole_rows && !p.keeps_whole(table.rows))
    throw ArgumentError(
        "the policy's placement cuts a parameter that a transform of tensors (Lars) sees as a whole: where "
        "ArenaTable::whole_rows is set, slices end at rows (plan::slices does that)");
}

SKEIN_INLINE std::uint64_t fingerprint(std::uint64_t model, std::size_t scalar, const Extents& input, std::string_view compute) {
  Fnv1a f;
  f.add(model).add(scalar).add(input);
  if (!compute.empty()) f.add(compute);
  return f.value();
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
