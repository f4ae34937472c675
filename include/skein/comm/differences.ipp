// SPDX-License-Identifier: Apache-2.0
// The bodies of differences.hpp.
#pragma once
#include <algorithm>
#include <string_view>
#include <utility>

#include "collective_call.hpp"
#include "differences.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
/// Names and values of a rank: those of a rank that must have them all begin with "+".
struct RankValues {
  bool whole = true;
  std::vector<std::pair<std::string, std::string>> values;

  explicit RankValues(std::string_view told) : whole(told.starts_with('+')) {
    for (told.remove_prefix(std::min<std::size_t>(1, told.size())); !told.empty();) {
      const std::string_view line = told.substr(0, told.find('\n'));
      const std::size_t tab = line.find('\t');
      if (tab != line.npos) values.emplace_back(line.substr(0, tab), line.substr(tab + 1));
      told.remove_prefix(std::min(told.size(), line.size() + 1));
    }
  }
  std::string_view value(std::string_view name) const {
    for (const auto& [n, value] : values)
      if (n == name) return value;
    return whole ? "not given" : "";
  }
};
}  // namespace detail

SKEIN_INLINE std::string differences(const std::vector<std::string>& texts, const RankNames& names) {
  std::vector<detail::RankValues> ranks(texts.begin(), texts.end());
  const int n = static_cast<int>(ranks.size());
  std::string found;
  TextList more;
  std::vector<std::string_view> said;
  for (const detail::RankValues& r : ranks)
    for (const auto& [name, value] : r.values)
      if (std::find(said.begin(), said.end(), name) == said.end()) said.push_back(name);
  for (const std::string_view name : said) {
    const auto of = [&](int r) { return ranks[static_cast<std::size_t>(r)].value(name); };
    std::string values;
    int kinds = 0;
    for (int r = 0; r < n; ++r) {
      bool seen = of(r).empty();
      for (int q = 0; q < r; ++q) seen = seen || of(q) == of(r);
      if (seen) continue;
      values.append(kinds++ ? ", " : " is ").append(of(r)).append(" on ");
      values += ranks_text(names.size() == n ? names : n, [&](int q) { return of(q) == of(r); });
    }
    if (kinds < 2) continue;
    if (found.empty()) found = std::string(name) + values;
    else if (more.text().size() < 300) more.add(name);
  }
  return more.empty() ? found : found + " (and so differ " + more.text() + ")";
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
