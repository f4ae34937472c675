// SPDX-License-Identifier: Apache-2.0
// The bodies of mailbox.hpp.
#pragma once
#include "mailbox.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void Message::finish(State s) {
  state.store(s, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0) wake_all(state, Reach::Process);
}

SKEIN_INLINE void Message::sleep(std::chrono::nanoseconds limit) {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (state.load(std::memory_order_seq_cst) == Pending) sleep_while(state, Pending, Reach::Process, limit);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

SKEIN_INLINE void Mailbox::put(Message& m) {
  Message* other = nullptr;
  {
    const std::lock_guard lock(mutex_);
    List& against = m.sends ? receives_ : sends_;
    other = against.remove_first([&](const Message& o) {
      const Message &r = m.sends ? o : m, &s = m.sends ? m : o;
      return r.tag == s.tag && (r.peer < 0 || r.peer == s.owner);
    });
    if (!other) {
      if (m.sends && m.bytes <= Message::eager) {
        if (m.bytes) std::memcpy(m.copy, m.from, m.bytes);
        m.from = m.copy;
        m.kept = true;
      }
      (m.sends ? sends_ : receives_).append(m);
    }
  }
  if (other) exchange(m.sends ? m : *other, m.sends ? *other : m);
}

SKEIN_INLINE bool Mailbox::take_back(Message& m) {
  const std::lock_guard lock(mutex_);
  return (m.sends ? sends_ : receives_).remove_first([&](const Message& o) { return &o == &m; }) != nullptr;
}

SKEIN_INLINE void Mailbox::List::append(Message& m) {
  m.next = nullptr;
  m.linked = true;
  (last ? last->next : first) = &m;
  last = &m;
}

SKEIN_INLINE void Mailbox::exchange(Message& s, Message& r) {
  const bool fits = s.bytes == r.bytes;
  if (fits && s.bytes) std::memcpy(r.to, s.from, s.bytes);
  s.other_bytes = r.bytes;
  r.other_bytes = s.bytes;
  r.sender = s.owner;
  r.finish(fits ? Message::Done : Message::WrongSize);
  s.finish(s.kept ? Message::Free : fits ? Message::Done : Message::WrongSize);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
