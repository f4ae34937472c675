// SPDX-License-Identifier: Apache-2.0
// Messages between processes of one node, through a ring of bytes in shared memory for each pair that talks. A sender copies its
// message in and goes on: what it computes then holds nobody up, while MPI moves a long message only inside the calls of both.
// What the ring cannot take follows from progress(); what the receiver has not asked for stays in the ring, or moves aside when
// it asks for another.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../request.hpp"
#include "../work.hpp"
#include "segment.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// As PointToPoint: started, polled, kept in a pool; messages of one pair and tag arrive in order.
class SharedLinks {
 public:
  static constexpr std::size_t short_bytes = 4096;  // never wait for their receiver

  SharedLinks(Segment& segment, int rank, int ranks)
      : segment_(segment), rank_(rank), to_(static_cast<std::size_t>(ranks)), from_(static_cast<std::size_t>(ranks)) {}

  Ticket start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
    std::size_t i = 0;
    while (i < pool_.size() && pool_[i].active) ++i;
    if (i == pool_.size()) pool_.emplace_back();
    pool_[i] = {true, false, sends, false, static_cast<char*>(data), bytes, 0, peer, tag, ++started_};
    ++active_;
    if (sends) {
      send(i);
    } else {
      ++posted_;
      take_aside(pool_[i]);
    }
    return {0, static_cast<std::int32_t>(i), peer};
  }
  bool test(Ticket& ticket) {
    Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
    if (!t.complete) progress();
    if (!t.complete) return false;
    ticket.peer = t.peer;
    t.active = false;
    --active_;
    if (!t.sends && t.came > t.bytes)
      throw CommError(describe(t) + ": the message is longer than the receiver's span of " + std::to_string(t.bytes) + " bytes");
    if (!t.sends && t.came < t.bytes)
      throw CommError(describe(t) + ": the message has " + std::to_string(t.came) + " bytes, the receiver's span " +
                      std::to_string(t.bytes));
    return true;
  }
  /// Moves what can be moved; false where nothing could.
  bool progress() {
    bool moved = false;
    if (waiting_ > 0)
      for (std::size_t q = 0; q < to_.size(); ++q) moved = push(static_cast<int>(q)) || moved;
    if (posted_ > 0)
      for (std::size_t q = 0; q < from_.size() && posted_ > 0; ++q) moved = pull(static_cast<int>(q)) || moved;
    return moved;
  }
  /// Transfers that nobody has seen complete, and messages that wait for room.
  int active() const { return active_ + waiting_; }
  int waiting() const { return waiting_; }
  std::string describe(const Ticket& t) const { return describe(pool_[static_cast<std::size_t>(t.message)]); }

 private:
  // A message in the ring: its header, and its bytes, padded so that no header wraps around.
  struct Header {
    std::uint64_t bytes = 0;
    std::int32_t tag = 0, unused = 0;
    std::uint64_t in_ring() const { return sizeof(Header) + (bytes + 15) / 16 * 16; }
  };
  static_assert(sizeof(Header) == 16);
  struct Transfer {
    bool active = false, complete = false, sends = false, matched = false;
    char* data = nullptr;
    std::size_t bytes = 0, came = 0;
    int peer = 0, tag = 0;
    std::uint64_t order = 0;
  };
  struct Outgoing {
    Header header;
    const char* data = nullptr;
    std::uint64_t done = 0;  // of header.in_ring()
    std::size_t transfer = 0;
    bool is_short = false;
    std::vector<char> copy;  // of a short one, whose transfer is complete already
  };
  struct Aside {
    int from = 0, tag = 0;
    std::vector<char> data;
  };
  struct Incoming {
    bool within = false;  // a message
    Header header;
    std::uint64_t done = 0;
    std::size_t transfer = 0;
    bool aside = false;
    Aside kept;
  };

  static std::string describe(const Transfer& t) {
    return std::string(t.sends ? "send to " : "recv from ") + (t.peer < 0 ? "any rank" : "rank " + std::to_string(t.peer)) +
           " (tag " + std::to_string(t.tag) + ")";
  }

  // ---- sending
  void send(std::size_t i) {
    Transfer& t = pool_[i];
    std::vector<Outgoing>& queue = to_[static_cast<std::size_t>(t.peer)];
    Outgoing o{{t.bytes, t.tag, 0}, t.data, 0, i, false, {}};
    if (queue.empty()) segment_.grow_link(rank_, t.peer, o.header.in_ring());
    if (queue.empty() && push(t.peer, o)) {
      t.complete = true;
      return;
    }
    if (t.bytes <= short_bytes) {
      o.is_short = true;
      o.copy.assign(t.data, t.data + t.bytes);
      t.complete = true;
    }
    queue.push_back(std::move(o));
    ++waiting_;
  }
  bool push(int to) {
    std::vector<Outgoing>& queue = to_[static_cast<std::size_t>(to)];
    std::size_t gone = 0;
    bool moved = false;
    for (Outgoing& o : queue) {
      const std::uint64_t before = o.done;
      const bool all = push(to, o);
      moved = moved || o.done != before;
      if (!all) break;
      if (!o.is_short) pool_[o.transfer].complete = true;
      ++gone;
    }
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(gone));
    waiting_ -= static_cast<int>(gone);
    return moved;
  }
  /// As much as there is room for; true once all of it is in the ring.
  bool push(int to, Outgoing& o) {
    LinkLine& line = segment_.link(rank_, to);
    const Ring ring = segment_.ring(rank_, to);
    std::uint64_t at = line.produced.load(std::memory_order_relaxed);
    const std::uint64_t whole = o.header.in_ring();
    std::uint64_t room = ring.bytes - (at - line.consumed.load(std::memory_order_acquire));
    if (o.done == 0) {
      if (room < sizeof(Header)) return false;
      std::memcpy(ring.data + at % ring.bytes, &o.header, sizeof(Header));
      at += sizeof(Header), room -= sizeof(Header), o.done = sizeof(Header);
    }
    const std::uint64_t n = std::min(room, whole - o.done);
    const char* const data = o.is_short ? o.copy.data() : o.data;
    each_run(ring, at, n, o.done - sizeof(Header), o.header.bytes,
             [&](char* in_ring, std::uint64_t offset, std::uint64_t count) { copy_bytes(in_ring, data + offset, count); });
    o.done += n;
    line.produced.store(at + n, std::memory_order_release);
    return o.done == whole;
  }

  // ---- receiving
  bool pull(int from) {
    Incoming& in = from_[static_cast<std::size_t>(from)];
    LinkLine& line = segment_.link(from, rank_);
    bool moved = false;
    while (true) {
      std::uint64_t at = line.consumed.load(std::memory_order_relaxed);
      std::uint64_t there = line.produced.load(std::memory_order_acquire) - at;
      const Ring ring = segment_.ring(from, rank_);
      if (!in.within) {
        if (there < sizeof(Header) || !wants(from)) return moved;
        std::memcpy(&in.header, ring.data + at % ring.bytes, sizeof(Header));
        begin(in, from);
        at += sizeof(Header), there -= sizeof(Header);
        moved = true;
      }
      const std::uint64_t n = std::min(there, in.header.in_ring() - in.done);
      char* const into = in.aside ? in.kept.data.data() : pool_[in.transfer].data;
      const std::uint64_t fits = in.aside ? in.header.bytes : std::min<std::uint64_t>(in.header.bytes, pool_[in.transfer].bytes);
      each_run(ring, at, n, in.done - sizeof(Header), fits, [&](const char* in_ring, std::uint64_t offset, std::uint64_t count) {
        copy_bytes(into + offset, in_ring, count);
      });
      in.done += n;
      line.consumed.store(at + n, std::memory_order_release);
      moved = moved || n > 0;
      if (in.done < in.header.in_ring()) return moved;
      end(in);
    }
  }
  /// Someone waits for a message of this rank: else what has come stays in the ring.
  bool wants(int from) const {
    for (const Transfer& t : pool_)
      if (is_open(t) && (t.peer < 0 || t.peer == from)) return true;
    return false;
  }
  static bool is_open(const Transfer& t) { return t.active && !t.sends && !t.complete && !t.matched; }
  /// The oldest receive that a message fits; null where there is none.
  Transfer* receiver_of(int from, int tag) {
    Transfer* oldest = nullptr;
    for (Transfer& t : pool_)
      if (is_open(t) && (t.peer < 0 || t.peer == from) && t.tag == tag && (!oldest || t.order < oldest->order)) oldest = &t;
    return oldest;
  }
  void begin(Incoming& in, int from) {
    in.within = true;
    in.done = sizeof(Header);
    Transfer* const t = receiver_of(from, in.header.tag);
    in.aside = t == nullptr;
    if (t) {
      t->matched = true;
      t->peer = from;
      in.transfer = static_cast<std::size_t>(t - pool_.data());
    } else {
      in.kept = {from, in.header.tag, std::vector<char>(in.header.bytes)};
    }
  }
  void end(Incoming& in) {
    in.within = false;
    if (!in.aside) return complete(pool_[in.transfer], in.header.bytes);
    aside_.push_back(std::move(in.kept));
    if (Transfer* const t = receiver_of(aside_.back().from, aside_.back().tag)) take_aside(*t);
  }
  /// Gives a receive the first message that was moved aside and fits it.
  void take_aside(Transfer& t) {
    for (auto a = aside_.begin(); a != aside_.end(); ++a) {
      if (a->tag != t.tag || (t.peer >= 0 && t.peer != a->from)) continue;
      copy_bytes(t.data, a->data.data(), std::min(a->data.size(), t.bytes));
      t.peer = a->from;
      complete(t, a->data.size());
      aside_.erase(a);
      return;
    }
  }
  void complete(Transfer& t, std::size_t came) {
    t.came = came;
    t.complete = true;
    --posted_;
  }

  /// f(in the ring, offset in the message, bytes) for the one or two runs of [at, at + n) of the ring, of which the message's
  /// part begins at `offset` and ends before `end`; what is behind is padding.
  template <class F>
  static void each_run(const Ring& ring, std::uint64_t at, std::uint64_t n, std::uint64_t offset, std::uint64_t end, F&& f) {
    n = offset < end ? std::min(n, end - offset) : 0;
    const std::uint64_t first = std::min(n, ring.bytes - at % ring.bytes);
    if (first) f(ring.data + at % ring.bytes, offset, first);
    if (n > first) f(ring.data, offset + first, n - first);
  }

  Segment& segment_;
  int rank_;
  std::vector<std::vector<Outgoing>> to_;  // what the rings had no room for
  std::vector<Incoming> from_;
  std::vector<Aside> aside_;
  std::vector<Transfer> pool_;
  int active_ = 0, posted_ = 0, waiting_ = 0;  // transfers not seen complete; receives not complete; messages in to_
  std::uint64_t started_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
