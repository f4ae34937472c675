// SPDX-License-Identifier: Apache-2.0
// The bodies of self_comm.hpp.
#pragma once
#include "../transfer.hpp"
#include "self_comm.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void SelfEngine::run(const CollectiveCall& o) {
  if (o.fold) {
    const void* from = o.send;
    void* into = o.recv;
    o.fold(o.functor, &into, 1, &from, 1, o.signature.count);
  } else if (o.send != o.recv && o.signature.count != 0) {
    std::memcpy(o.recv, o.send, o.bytes(o.signature.count));
  }
}

SKEIN_INLINE Ticket SelfEngine::start(const CollectiveCall& o) {
  run(o);
  return {};
}

SKEIN_INLINE Ticket SelfEngine::start_send(const void* data, std::size_t bytes, int, int tag) {
  for (Wanted& w : wanted_)
    if (!w.complete && w.tag == tag) return complete(w, data, bytes), Ticket{};
  const char* first = static_cast<const char*>(data);
  sent_.push_back({tag, std::string(first, first + bytes)});
  return {};
}

SKEIN_INLINE Ticket SelfEngine::start_recv(void* data, std::size_t bytes, int, int tag) {
  wanted_.push_back({++received_, tag, bytes, data});
  for (auto s = sent_.begin(); s != sent_.end(); ++s) {
    if (s->first != tag) continue;
    complete(wanted_.back(), s->second.data(), s->second.size());
    sent_.erase(s);
    break;
  }
  return {received_, 0, 0};
}

SKEIN_INLINE void SelfEngine::complete(Wanted& w, const void* data, std::size_t bytes) {
  if (bytes == w.bytes && bytes) std::memcpy(w.data, data, bytes);
  w.complete = true;
  w.came = bytes;
}

SKEIN_INLINE std::vector<SelfEngine::Wanted>::iterator SelfEngine::find(const Ticket& t) {
  auto w = wanted_.begin();
  while (w != wanted_.end() && w->number != t.number) ++w;
  return w;
}

SKEIN_INLINE bool SelfEngine::test(Ticket& t) {
  if (t.message < 0) return true;
  const auto w = find(t);
  if (w == wanted_.end()) throw CommError("recv: an exception passed through a message of this world of one, and ended it");
  if (!w->complete) return false;
  const std::size_t came = w->came, wanted = w->bytes;
  wanted_.erase(w);
  if (came != wanted) throw CommError("recv: " + length_text(came, wanted));
  return true;
}

SKEIN_INLINE void SelfEngine::wait(Ticket& t) {
  if (test(t)) return;
  wanted_.erase(find(t));  // its span may go
  throw CommError("recv: a world of one waits for a message that it has not sent");
}

}  // namespace skein::inline SKEIN_ABI::comm
