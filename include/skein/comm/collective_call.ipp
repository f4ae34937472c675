// SPDX-License-Identifier: Apache-2.0
// The bodies of collective_call.hpp.
#pragma once
#include <algorithm>

#include "collective_call.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::string describe(const Signature& s) {
  if (!is_known(s)) return "a call that this library does not know";
  std::string text(collective_names[static_cast<int>(s.kind)]);
  if (s.reduction) text += "(" + std::string(reduction_names[s.reduction]) + ")";
  if (s.kind == Collective::Barrier) return text;
  text += " of " + std::to_string(s.count) + " ";
  if (s.scalar == 0 && s.element != 1) text += "objects of " + std::to_string(s.element) + " bytes";
  else text += scalar_names[s.scalar];
  if (s.kind == Collective::Broadcast) text += " from rank " + std::to_string(s.root);
  if (s.kind == Collective::Reduce) text += " to rank " + std::to_string(s.root);
  if (s.counts_hash) text += " (own counts, hash " + std::to_string(s.counts_hash % 100000) + ")";
  return text;
}

SKEIN_INLINE int checked_rank(int r, const CallPlace& place) {
  if (r < 0 || r >= place.ranks)
    throw ArgumentError(std::string(place.call) + ": there is no rank " + std::to_string(r) + " among " +
                        std::to_string(place.ranks));
  return r;
}

SKEIN_INLINE void set_counts(CollectiveCall& o, const CallPlace& place, std::size_t whole, std::size_t part,
                             std::span<const std::size_t> counts) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  if (counts.empty()) {
    o.signature.count = part;
    if (whole != part * ranks)
      throw ArgumentError(std::string(place.call) + ": the longer span must hold " + std::to_string(ranks) + " pieces of " +
                          std::to_string(part) + " values; it holds " + std::to_string(whole));
    return;
  }
  std::size_t sum = 0;
  for (const std::size_t c : counts) sum += c;
  if (counts.size() != ranks || sum != whole || counts[static_cast<std::size_t>(place.rank)] != part)
    throw ArgumentError(std::string(place.call) + ": counts must name one piece a rank that add up to the longer span; " +
                        std::to_string(counts.size()) + " counts add up to " + std::to_string(sum) + " of " +
                        std::to_string(whole) + " values, and this rank's span holds " + std::to_string(part));
  o.counts = counts.data();
  o.signature.count = sum;
  o.signature.counts_hash = hash_bytes(counts.data(), counts.size_bytes());
}

SKEIN_INLINE std::string ranks_text(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) (text += i ? ", " : "") += std::to_string(ranks[i]);
  return text;
}

SKEIN_INLINE std::string mismatch_text(unsigned long long call, std::span<const Signature> all) {
  std::string text = "collective call " + std::to_string(call) + " differs between ranks";
  const char* before = ": ";
  const int size = static_cast<int>(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(r), all[r]) !=
        all.begin() + static_cast<std::ptrdiff_t>(r))
      continue;
    text +=
        before + ranks_text(size, [&](int q) { return all[static_cast<std::size_t>(q)] == all[r]; }) + ": " + describe(all[r]);
    before = "; ";
  }
  return text + ". Every rank must make the same calls in the same order";
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
