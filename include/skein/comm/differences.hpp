// SPDX-License-Identifier: Apache-2.0
// Where the values that ranks should have alike differ: the sentence that names the first value, and which rank has which.
#pragma once
#include <string>
#include <vector>

#include "../core/named_values.hpp"
#include "rank_names.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// "`.lr` of Adam is 0.1 on rank 0, 0.01 on ranks 1, 2": the first value that differs in full, the next by name; "" where none
/// does. `texts`: of each rank, a '+' and lines of NamedValues; or a '-' and lines, of a rank that need not have them all.
std::string differences(const std::vector<std::string>& texts, const RankNames& names = {});

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "differences.ipp"
#endif
