// SPDX-License-Identifier: Apache-2.0
// The bodies of replicas.hpp.
#pragma once
#include "../comm/collective_call.hpp"
#include "../core/named_values.hpp"
#include "agreement.hpp"
#include "replicas.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE std::string parameter_hashes(std::span<const plan::Entry> entries, std::span<const plan::PathPart> paths,
                                          const void* values, std::size_t scalar_bytes) {
  NamedValues parameters;
  for (const plan::Entry& e : entries)
    parameters.add_hash(std::string_view(plan::name_of(paths, e)),
                        static_cast<const std::byte*>(values) + static_cast<std::size_t>(e.offset) * scalar_bytes,
                        static_cast<std::size_t>(e.stored) * scalar_bytes);
  return "+" + parameters.lines();
}

/// "; most ranks have the same, and rank 1 differs from them", where that is so.
inline std::string minority(const std::vector<std::string>& texts) {
  for (const std::string& one : texts) {
    const auto equal = static_cast<std::size_t>(std::count(texts.begin(), texts.end(), one));
    if (2 * equal <= texts.size()) continue;
    const std::string others =
        comm::ranks_text(static_cast<int>(texts.size()), [&](int r) { return texts[static_cast<std::size_t>(r)] != one; });
    return "; most ranks have the same, and " + others + (others.starts_with("ranks") ? " differ" : " differs") + " from them";
  }
  return "";
}

SKEIN_INLINE void fail_replicas(std::string_view when, const std::vector<std::string>& texts) {
  throw CommError(
      text("the ranks have other weights {}: {}{}: all must make the same updates; look for a callback or a loop that "
           "changes weights or the optimizer on one rank alone, or for a machine whose memory flips bits",
           when, differences(texts), minority(texts)));
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
