// SPDX-License-Identifier: Apache-2.0
// The bodies of collective_call.hpp.
#pragma once
#include "collective_call.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::string describe(const Signature& s) {
  if (!is_known(s)) return "a call that this library does not know";
  std::string text(collective_names[static_cast<int>(s.kind)]);
  if (s.reduction) text += "(" + std::string(reduction_names[s.reduction]) + ")";
  const std::string within = s.public_call() ? " in " + std::string(public_call_names[s.public_call()]) : std::string();
  if (s.kind == Collective::Barrier) return text + within;
  text += " of " + std::to_string(s.count) + " ";
  if (s.scalar == 0 && s.element != 1) text += "objects of " + std::to_string(s.element) + " bytes";
  else text += scalar_names[s.scalar];
  if (s.kind == Collective::Broadcast) text += " from rank " + std::to_string(s.root);
  if (s.kind == Collective::Reduce) text += " to rank " + std::to_string(s.root);
  if (s.counts_hash) text += " (own counts, hash " + std::to_string(s.counts_hash % 100000) + ")";
  return text + within;
}

SKEIN_INLINE std::string public_calls_text(std::span<const std::pair<int, Signature>> calls) {
  const std::pair<int, Signature>* first = nullptr;  // who has just come into its call
  for (const auto& c : calls)
    if (is_known(c.second) && c.second.opens() && c.second.public_call() && !first) first = &c;
  if (!first) return {};
  std::string others, where;
  int count = 0;
  for (const auto& [rank, s] : calls) {
    if (!is_known(s) || s.public_call() == first->second.public_call()) continue;
    others += (count++ ? ", " : "") + std::to_string(rank);
    if (where.empty() && s.public_call()) where = "it is in " + std::string(public_call_names[s.public_call()]);
  }
  if (count == 0) return {};
  std::string text = not_called_text(first->second, (count > 1 ? "ranks " : "rank ") + others);
  if (count == 1 && !where.empty()) text.replace(text.size() - 2, 2, "; " + where + ". ");
  return text;
}

SKEIN_INLINE std::string not_called_text(const Signature& s, std::string_view missing) {
  if (!is_known(s) || !s.opens() || !s.public_call()) return {};
  return std::string(public_call_names[s.public_call()]) + " is a call of all ranks: " + std::string(missing) +
         (missing.starts_with("ranks") ? " have" : " has") + " not called it. ";
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
