// SPDX-License-Identifier: Apache-2.0
// The bodies of call_history.hpp.
#pragma once
#include "call_history.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE void CallHistory::add(const Signature& s) {
  Entry& e = entries_[calls_++ % kept];
  e.hash_before = hash_;
  e.signature = s;
  const Signature compared = s.compared();
  hash_ = Fnv1a{}.add(hash_).add(hash_bytes(&compared, sizeof compared)).value();
}

SKEIN_MPI_INLINE RecentCalls CallHistory::recent() const {
  RecentCalls r;
  r.calls = calls_;
  r.shown = std::min(calls_, RecentCalls::most);
  const std::uint64_t first = calls_ - r.shown;
  r.hash_before = r.shown ? entry(first).hash_before : hash_;
  for (std::uint64_t i = 0; i < r.shown; ++i) r.signature[i] = entry(first + i).signature;
  return r;
}

SKEIN_MPI_INLINE std::optional<std::string> CallHistory::difference(const RecentCalls& other, int other_rank, int own_rank,
                                                                    const RankNames& names) const {
  const std::uint64_t shown = std::min(other.shown, RecentCalls::most), first = other.calls - shown;
  if (other.calls < shown || first + kept < calls_ || first >= calls_) return std::nullopt;
  if (other.hash_before != entry(first).hash_before)
    return text(
        "collective calls before call {} differ between {} and {}. Every rank must make the same calls in the same order; "
        "SKEIN_CHECK=1 names the first that differs",
        first, names.name(other_rank), names.name(own_rank));
  for (std::uint64_t i = 0; i < shown && first + i < calls_; ++i)
    if (!(other.signature[i] == entry(first + i).signature)) {
      const Signature own = entry(first + i).signature;
      std::vector<std::pair<int, Signature>> calls = {{own_rank, own}, {other_rank, other.signature[i]}};
      if (other_rank < own_rank) std::swap(calls[0], calls[1]);
      return mismatch_text(first + i, names, calls);
    }
  return std::nullopt;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
