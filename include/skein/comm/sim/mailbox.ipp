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

SKEIN_INLINE SimMailbox::Letters::const_iterator SimMailbox::earliest(const SimReceive& r) const {
  auto best = letters_.end();
  for (auto l = letters_.begin(); l != letters_.end(); ++l)
    if (fits(r, *l) && (best == letters_.end() || due_of(*l) < due_of(*best))) best = l;
  return best;
}

SKEIN_INLINE void SimMailbox::match() {
  for (auto& entry : receives_) {
    SimReceive& r = entry.second;
    if (r.matched || r.from < 0) continue;
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
  if (r->from >= 0) return sim_never;
  const auto letter = earliest(*r);
  return letter == letters_.end() ? sim_never : due_of(*letter);
}

SKEIN_INLINE SimReceive SimMailbox::finish(std::uint64_t number) {
  if (sends_.erase(number)) return {};
  const auto found = receives_.find(number);
  if (found == receives_.end()) return {};
  if (!found->second.matched) take(found->second, earliest(found->second));
  const SimReceive r = found->second;
  receives_.erase(found);
  return r;
}

SKEIN_INLINE const SimReceive* SimMailbox::receive(std::uint64_t number) const {
  const auto found = receives_.find(number);
  return found == receives_.end() ? nullptr : &found->second;
}

}  // namespace skein::inline SKEIN_ABI::comm
