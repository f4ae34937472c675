// SPDX-License-Identifier: Apache-2.0
// The bodies of collective_call.hpp.
#pragma once
#include <string>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "collective_call.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::string describe(const Signature& s, const RankNames& names) {
  if (!is_known(s)) return "a call that this library does not know";
  std::string text(collective_names[static_cast<int>(s.kind)]);
  if (s.reduction) text += "(" + std::string(reduction_names[s.reduction]) + ")";
  const std::string within = s.public_call() ? " in " + std::string(public_call_names[s.public_call()]) : std::string();
  if (s.kind == Collective::Barrier) return text + within;
  text += skein::text(" of {} ", s.count);
  if (s.scalar == 0 && s.element != 1) text += skein::text("objects of {} bytes", s.element);
  else text += scalar_names[s.scalar];
  if (s.kind == Collective::Broadcast) text += " from " + names.name(s.root);
  if (s.kind == Collective::Reduce) text += " to " + names.name(s.root);
  if (s.counts_hash) text += skein::text(" (own counts, hash {})", s.counts_hash % 100000);
  if (s.shared_at) text += skein::text(" in shared pages (place {})", s.shared_at);
  return text + within;
}

SKEIN_INLINE std::string public_calls_text(const std::vector<std::pair<int, Signature>>& calls, const RankNames& names) {
  const std::pair<int, Signature>* first = nullptr;  // who has just come into its call
  for (const auto& c : calls)
    if (is_known(c.second) && c.second.opens() && c.second.public_call() && !first) first = &c;
  if (!first) return {};
  std::vector<int> others;
  std::string where;
  for (const auto& [rank, s] : calls) {
    if (!is_known(s) || s.public_call() == first->second.public_call()) continue;
    others.push_back(names.number(rank));
    if (where.empty() && s.public_call()) where = "it is in " + std::string(public_call_names[s.public_call()]);
  }
  if (others.empty()) return {};
  std::string text = not_called_text(first->second, ranks_text(others));
  if (others.size() == 1 && !where.empty()) text.replace(text.size() - 2, 2, "; " + where + ". ");
  return text;
}

SKEIN_INLINE std::string not_called_text(const Signature& s, std::string_view missing) {
  if (!is_known(s) || !s.opens() || !s.public_call()) return {};
  return std::string(public_call_names[s.public_call()]) + " is a call of all ranks: " + std::string(missing) +
         (missing.starts_with("ranks") ? " have" : " has") + " not called it. ";
}

SKEIN_INLINE std::string mismatch_text(unsigned long long call, const RankNames& names, OfRank<Signature> of) {
  std::vector<std::pair<int, Signature>> calls;
  for (int r = 0; r < names.size(); ++r) calls.emplace_back(r, of(r));
  return mismatch_text(call, names, calls);
}

SKEIN_INLINE std::string mismatch_text(unsigned long long call, const RankNames& names,
                                       const std::vector<std::pair<int, Signature>>& calls) {
  std::string out = public_calls_text(calls, names) + text("collective call {} differs between ranks", call);
  const char* before = ": ";
  for (std::size_t r = 0; r < calls.size(); ++r) {
    const Signature& s = calls[r].second;
    std::vector<int> equal;
    for (const auto& c : calls)
      if (c.second == s) equal.push_back(names.number(c.first));
    if (equal.front() != names.number(calls[r].first)) continue;  // said
    out.append(before).append(ranks_text({equal.data(), equal.size()})).append(": ").append(describe(s, names));
    before = "; ";
  }
  return out + ". Every rank must make the same calls in the same order";
}

SKEIN_INLINE void throw_no_rank(int r, const CallPlace& place) {
  throw ArgumentError(text("{}: there is no rank {} among {}", place.call, r, place.ranks));
}

SKEIN_INLINE void check_color(int color) {
  if (color < 0) throw ArgumentError(skein::text("split: a colour is 0 or more; it is {}", color));
}

SKEIN_INLINE std::size_t CollectiveCall::sent_bytes(int rank, int ranks) const {
  const auto all = signature.count * static_cast<std::size_t>(ranks);
  switch (signature.kind) {
    case Collective::Barrier:
      return 0;
    case Collective::ReduceScatter:
      return bytes(counts ? signature.count : all);
    case Collective::AllToAll:
      return bytes(all);
    case Collective::AllGather:
      return bytes(piece(rank).count);
    default:
      return bytes(signature.count);
  }
}

SKEIN_INLINE std::size_t CollectiveCall::received_bytes(int rank, int ranks) const {
  const bool gathers = signature.kind == Collective::AllGather, scatters = signature.kind == Collective::ReduceScatter;
  if (gathers) return bytes(counts ? signature.count : signature.count * static_cast<std::size_t>(ranks));
  return scatters ? bytes(piece(rank).count) : sent_bytes(rank, ranks);
}

SKEIN_INLINE void set_counts(CollectiveCall& o, const CallPlace& place, std::size_t whole, std::size_t part,
                             std::span<const std::size_t> counts) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  if (counts.empty()) {
    o.signature.count = part;
    if (whole != part * ranks)
      throw ArgumentError(
          text("{}: the longer span must hold {} pieces of {} values; it holds {}", place.call, ranks, part, whole));
    return;
  }
  std::size_t sum = 0;
  for (const std::size_t c : counts) sum += c;
  if (counts.size() != ranks || sum != whole || counts[static_cast<std::size_t>(place.rank)] != part)
    throw ArgumentError(
        text("{}: counts must name one piece a rank that add up to the longer span; {} counts add up to {} of {} "
             "values, and this rank's span holds {}",
             place.call, counts.size(), sum, whole, part));
  o.counts = counts.data();
  o.signature.count = sum;
  o.signature.counts_hash = hash_bytes(counts.data(), counts.size_bytes());
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
