// SPDX-License-Identifier: Apache-2.0
// The bodies of replicas.hpp.
#pragma once
#include "../comm/collective_call.hpp"
#include "../comm/differences.hpp"
#include "agreement.hpp"
#include "replicas.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE void add_parameter_hashes(NamedValues& to, std::span<const plan::Entry> entries,
                                       std::span<const plan::PathPart> paths, plan::Range part, const void* values,
                                       std::size_t scalar_bytes) {
  for (const plan::Entry& e : entries)
    if (part.begin <= e.offset && e.offset < part.end)
      to.add_hash(std::string_view(plan::name_of(paths, e)),
                  static_cast<const std::byte*>(values) + static_cast<std::size_t>(e.offset - part.begin) * scalar_bytes,
                  static_cast<std::size_t>(e.stored) * scalar_bytes);
}

SKEIN_INLINE bool replicas_equal(std::span<const std::uint64_t> all, std::size_t apart) {
  for (std::size_t r = apart; r < all.size(); ++r)
    if (all[r] != all[r - apart]) return false;
  return true;
}

/// "; most ranks have the same, and rank 1 differs from them", where that is so among ranks that have the same parameters.
inline std::string minority(const std::vector<std::string>& texts, std::size_t apart, const comm::RankNames& names) {
  for (std::size_t one = 0; one < texts.size(); ++one) {
    const auto differs = [&](std::size_t r) { return r % apart == one % apart && texts[r] != texts[one]; };
    std::size_t others = 0;
    for (std::size_t r = 0; r < texts.size(); ++r) others += differs(r) ? 1 : 0;
    if (others == 0 || 2 * others * apart >= texts.size()) continue;
    const int n = static_cast<int>(texts.size());
    const std::string named = comm::ranks_text(names.size() == n ? names : comm::RankNames(n),
                                               [&](int r) { return differs(static_cast<std::size_t>(r)); });
    return text("; most ranks {}have the same, and {} {} from them", apart > 1 ? "of its stages " : "", named,
                others > 1 ? "differ" : "differs");
  }
  return "";
}

SKEIN_INLINE void fail_replicas(std::string_view when, const std::vector<std::string>& texts, std::size_t apart,
                                const comm::RankNames& names) {
  throw CommError(
      text("the ranks have other weights {}: {}{}: all must make the same updates; look for a callback or a loop that "
           "changes weights or the optimizer on one rank alone, or for a machine whose memory flips bits",
           when, comm::differences(texts, names), minority(texts, apart, names)));
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
