// SPDX-License-Identifier: Apache-2.0
// The bodies of messages.hpp.
#pragma once
#include "differences.hpp"
#include "messages.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::vector<std::string> split_texts(std::string_view joined, const std::vector<std::size_t>& lengths) {
  std::vector<std::string> all;
  for (std::size_t r = 0, at = 0; r < lengths.size(); at += lengths[r++]) all.emplace_back(joined.substr(at, lengths[r]));
  return all;
}

SKEIN_INLINE void fail_differing(std::string_view what, const std::vector<std::uint64_t>& hashes,
                                 const std::vector<std::string>& beliefs, const RankNames& names) {
  TextList kinds("; ");
  const int n = static_cast<int>(hashes.size());
  for (int r = 0; r < n; ++r) {
    const auto equal = [&](int q) { return hashes[static_cast<std::size_t>(q)] == hashes[static_cast<std::size_t>(r)]; };
    bool seen = false;
    for (int q = 0; q < r; ++q) seen = seen || equal(q);
    if (!seen) kinds.add(ranks_text(names, equal) + ": " + beliefs[static_cast<std::size_t>(r)]);
  }
  throw CommError(text("{} differs between ranks: {}. Start every rank with the same program and options", what, kinds.text()));
}

SKEIN_INLINE void fail_differing(std::string_view what, const std::vector<std::string>& lines, const RankNames& names) {
  throw CommError(
      text("{} differ between ranks: {}. Start every rank with the same program and options", what, differences(lines, names)));
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
