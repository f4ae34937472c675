// SPDX-License-Identifier: Apache-2.0
// The bodies of rank_names.hpp.
#pragma once
#include "rank_names.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::string ranks_text(std::span<const int> numbers) {
  return (numbers.size() == 1 ? "rank " : "ranks ") + joined(numbers);
}

SKEIN_INLINE std::string ranks_text(const RankNames& names, OfRank<bool> wanted) {
  std::vector<int> numbers;
  for (int r = 0; r < names.size(); ++r)
    if (wanted(r)) numbers.push_back(names.number(r));
  return ranks_text({numbers.data(), numbers.size()});
}

SKEIN_INLINE std::string some_ranks_text(const RankNames& names, OfRank<bool> wanted) {
  for (int r = 0; r < names.size(); ++r)
    if (wanted(r)) return ranks_text(names, wanted);
  return "";
}

SKEIN_INLINE std::string abandoned_text(const RankNames& names, int rank) {
  return names.name(rank) + " failed: an exception passed through a call that was under way";
}

SKEIN_INLINE std::string gone_text(std::span<const int> numbers) {
  return ranks_text(numbers) + (numbers.size() > 1
                                    ? " are gone: their processes ended (their own output says why), or were killed"
                                    : " is gone: its process ended (its own output says why), or was killed");
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
