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
#include "../transfer.hpp"
#include "../work.hpp"
#include "segment.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// Messages through shared memory, with the functions of PointToPoint: started, polled, kept in a pool; those of one pair and
/// tag arrive in order.
class SharedLinks {
 public:
  static constexpr std::size_t short_bytes = 4096;  // never wait for their receiver

  SharedLinks(Segment& segment, int rank, RankNames ranks);

  Ticket start(bool sends, void* data, std::size_t bytes, int peer, int tag);
  bool test(Ticket& ticket);
  /// Moves what can be moved; false where nothing could.
  bool progress();
  /// The communicator has failed: nothing moves any more, whose memory may be another's by now.
  void keep() { kept_ = true; }
  /// Works until no message waits for room, at most so many seconds, or until over().
  template <class Over> void deliver(double limit, Over&& over) {
    auto timer = Deadline::from_now(limit);
    while (waiting_ > 0 && !timer.over() && !over())
      if (!progress()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  /// Transfers that nobody has seen complete, and messages that wait for room.
  int active() const { return active_ + waiting_; }
  int waiting() const { return waiting_; }
  /// One of the messages that wait for room goes to a rank for which takes(rank) is true.
  bool waits_for(OfRank<bool> takes) const;
  std::string describe(const Ticket& t) const { return pool_[static_cast<std::size_t>(t.message)].text(names_); }

 private:
  // A message in the ring: its header, and its bytes, padded so that no header wraps around.
  struct Header {
    std::uint64_t bytes = 0;
    std::int32_t tag = 0, unused = 0;
    std::uint64_t in_ring() const { return sizeof(Header) + (bytes + 15) / 16 * 16; }
  };
  static_assert(sizeof(Header) == 16);
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

  // ---- sending
  void send(std::size_t i);
  bool push(int to);
  /// Writes as much as there is room for; true once all of it is in the ring.
  bool push(int to, Outgoing& o);

  // ---- receiving
  bool pull(int from);
  /// Someone waits for a message of this rank: else what has come stays in the ring.
  bool wants(int from) const;
  void begin(Incoming& in, int from);
  void end(Incoming& in);
  /// Gives a receive the first message that was moved aside and fits it.
  void take_aside(Transfer& t);
  void complete(Transfer& t, std::size_t came);

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
  RankNames names_;
  std::vector<std::vector<Outgoing>> to_;  // what the rings had no room for
  std::vector<Incoming> from_;
  std::vector<Aside> aside_;
  std::vector<Transfer> pool_;
  int active_ = 0, posted_ = 0, waiting_ = 0;  // transfers not seen complete; receives not complete; messages in to_
  std::uint64_t started_ = 0;
  bool kept_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "shared_links.ipp"
#endif
