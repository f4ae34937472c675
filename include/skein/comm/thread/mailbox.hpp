// SPDX-License-Identifier: Apache-2.0
// Messages between threads: whoever of sender and receiver comes second copies, straight from buffer to buffer; short messages
// are kept so that their sender need not wait. Messages live in pools that grow at first and then serve for ever.
#pragma once
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>

#include "../wait.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// A send or a receive that waits for its other half.
struct Message {
  enum State : std::uint32_t { Free, Pending, Done, WrongSize };
  static constexpr std::size_t eager = 4096;

  Counter state{Free}, sleepers{0};
  int owner = 0, peer = 0, tag = 0, box = 0;         // peer: the receiver, or the sender that is wanted (-1: any)
  int sender = -1;                                   // of a receive that is complete; not `peer`, which its waiting owner reads
  bool linked = false, sends = false, kept = false;  // linked: in its box, under the box's lock
  const char* from = nullptr;
  char* to = nullptr;
  std::size_t bytes = 0, other_bytes = 0;
  Message* next = nullptr;
  alignas(64) char copy[eager];

  void finish(State s);
  void sleep(std::chrono::nanoseconds limit);
};

/// The messages of one rank. Only the rank takes one; who completes a kept message gives it back.
class MessagePool {
 public:
  int take() {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const std::size_t at = (next_ + i) % messages_.size();
      if (messages_[at].state.load(std::memory_order_acquire) != Message::Free) continue;
      next_ = at + 1;
      return static_cast<int>(at);
    }
    messages_.emplace_back();
    return static_cast<int>(messages_.size()) - 1;
  }
  Message& operator[](int i) { return messages_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(messages_.size()); }

 private:
  std::deque<Message> messages_;
  std::size_t next_ = 0;
};

/// Sends to one rank, and its receives, that wait for their other half.
class Mailbox {
 public:
  /// Matches with the oldest fitting message, or stays.
  void put(Message& m);
  /// Takes a message back that has not been matched; false where it has.
  bool take_back(Message& m);

 private:
  struct List {
    Message *first = nullptr, *last = nullptr;
    void append(Message& m);
    template <class Wanted> Message* remove_first(Wanted&& wanted) {
      for (Message *m = first, *before = nullptr; m; before = m, m = m->next) {
        if (!wanted(*m)) continue;
        (before ? before->next : first) = m->next;
        if (last == m) last = before;
        m->linked = false;
        return m;
      }
      return nullptr;
    }
  };

  static void exchange(Message& s, Message& r);

  std::mutex mutex_;
  List sends_, receives_;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "mailbox.ipp"
#endif
