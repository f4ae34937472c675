// SPDX-License-Identifier: Apache-2.0
// The bodies of mailbox.hpp.
#pragma once
#include <cstring>
#include <utility>

#include "mailbox.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::uint64_t SimMailbox::add(const SimReceive& r) {
  receives_[++numbers_] = r;
  return numbers_;
}

SKEIN_INLINE std::uint64_t SimMailbox::add_send(double leaves) {
  sends_[++numbers_] = leaves;
  return numbers_;
}

SKEIN_INLINE bool SimMailbox::fits(const SimReceive& r, const SimLetter& l) {
  return l.group == r.group && l.tag == r.tag && (r.from < 0 || r.from == l.from);
}

SKEIN_INLINE bool SimMailbox::is_open(std::uint64_t number, const SimReceive& r) const {
  if (r.from < 0) return true;
  for (const auto& [n, before] : receives_)
    if (n < number && !before.matched && before.from < 0 && before.group == r.group && before.tag == r.tag) return true;
  return false;
}

SKEIN_INLINE std::vector<SimMailbox::Share> SimMailbox::share_out(std::uint64_t number) const {
  const SimReceive& wanted = receives_.at(number);
  std::vector<Share> shares;
  const auto gone = [&](std::size_t i) {
    return std::any_of(shares.begin(), shares.end(), [&](auto& s) { return s.letter == i; });
  };
  const auto given = [&](std::uint64_t n) {
    return std::any_of(shares.begin(), shares.end(), [&](auto& s) { return s.number == n; });
  };
  for (double free = free_at_;; free = shares.back().due) {
    Share first;
    std::vector<int> senders;  // of each the oldest letter is the next to come
    for (std::size_t i = 0; i < letters_.size(); ++i) {
      const SimLetter& l = letters_[i];
      if (l.group != wanted.group || l.tag != wanted.tag || gone(i)) continue;
      if (std::find(senders.begin(), senders.end(), l.from) != senders.end()) continue;
      senders.push_back(l.from);
      const double due = std::max(l.departed, free) + l.takes;
      for (auto r = receives_.begin(); due < first.due && r != receives_.end(); ++r)
        if (!r->second.matched && fits(r->second, l) && !given(r->first)) first = {r->first, i, due};
    }
    if (first.due == sim_never) return {};
    shares.push_back(first);
    if (first.number == number) return shares;
  }
}

SKEIN_INLINE void SimMailbox::match() {
  for (auto& entry : receives_) {
    SimReceive& r = entry.second;
    if (r.matched || is_open(entry.first, r)) continue;
    for (auto l = letters_.cbegin(); l != letters_.cend(); ++l) {
      if (!fits(r, *l)) continue;
      take(r, l);
      break;
    }
  }
}

SKEIN_INLINE void SimMailbox::take(SimReceive& r, Letters::const_iterator l) {
  r.matched = true;
  r.due = free_at_ = due_of(*l);
  r.peer = l->from;
  r.came = l->data.size();
  if (r.came == r.bytes && r.bytes) std::memcpy(r.to, l->data.data(), r.bytes);
  letters_.erase(l);
}

SKEIN_INLINE double SimMailbox::completion(std::uint64_t number, double now, bool& fixed) const {
  fixed = true;
  if (const auto sent = sends_.find(number); sent != sends_.end()) return sent->second;
  const SimReceive* const r = receive(number);
  if (!r) return now;
  if (r->matched) return r->due;
  fixed = false;
  if (!is_open(number, *r)) return sim_never;
  const std::vector<Share> shares = share_out(number);
  return shares.empty() ? sim_never : shares.back().due;
}

SKEIN_INLINE SimReceive SimMailbox::finish(std::uint64_t number) {
  if (sends_.erase(number)) return {};
  const auto found = receives_.find(number);
  if (found == receives_.end()) return {};
  const bool was_open = !found->second.matched;
  while (!found->second.matched) {
    const Share next = share_out(number).front();
    take(receives_.at(next.number), letters_.cbegin() + static_cast<std::ptrdiff_t>(next.letter));
  }
  const SimReceive r = found->second;
  receives_.erase(found);
  if (was_open) match();  // those behind it
  return r;
}

SKEIN_INLINE const SimReceive* SimMailbox::receive(std::uint64_t number) const {
  const auto found = receives_.find(number);
  return found == receives_.end() ? nullptr : &found->second;
}

}  // namespace skein::inline SKEIN_ABI::comm
