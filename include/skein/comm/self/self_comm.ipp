// SPDX-License-Identifier: Apache-2.0
// The bodies of self_comm.hpp.
#pragma once
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
  const char* first = static_cast<const char*>(data);
  sent_.push_back({tag, std::string(first, first + bytes)});
  return {};
}

SKEIN_INLINE Ticket SelfEngine::start_recv(void* data, std::size_t bytes, int, int tag) {
  wanted_.push_back({++received_, tag, bytes, data});
  return {received_, 0, 0};
}

SKEIN_INLINE void SelfEngine::wait(Ticket& t) {
  if (!test(t)) throw CommError("recv: a world of one waits for a message that it has not sent");
}

}  // namespace skein::inline SKEIN_ABI::comm
