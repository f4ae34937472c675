// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a node map: their lines, the signatures of their calls, the failure that ends all, two rings of slots
// for each rank through which collectives pass, and a ring of bytes for each pair through which messages do.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "../collective_call.hpp"
#include "../wait.hpp"
#include "shared_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// What two ranks say about the ring from one to the other, in bytes since the start.
struct alignas(128) LinkLine {
  std::atomic<std::uint64_t> produced{0};
  alignas(64) std::atomic<std::uint64_t> consumed{0};
  Counter large{0};  // the ring is the large one; changes while it is empty
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "counters are shared between processes: they must be lock-free");

/// The bytes of the ring from one rank to another; positions are modulo `bytes`.
struct Ring {
  char* data = nullptr;
  std::uint64_t bytes = 0;
};

/// What the ranks of a node tell each other while they make a segment: by the communicator that it will serve.
class NodeMeeting {
 public:
  virtual ~NodeMeeting() = default;
  /// Rank 0's text, on every rank.
  virtual void tell(SharedFileText& text) = 0;
  /// All ranks say so.
  virtual bool all(bool good) = 0;
};

/// One mapping a communicator. Owns it; whoever refers into it must end before it does.
class Segment {
 public:
  static constexpr std::uint64_t calls = 64;         // signatures of a rank's ring: more than its slots
  static constexpr std::uint64_t folding_depth = 4;  // slots of the short ring: they stay in the second-level cache

  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  /// Collective over ranks of one node. False, on all ranks alike, where the machine gives no shared memory.
  bool create(NodeMeeting& meeting, int rank, int ranks);

  Line& line(int r) const { return at<Line>(lines_at_)[r]; }
  Signature& signature(int r, std::uint64_t call) const {
    return at<Signature>(signatures_at_)[static_cast<std::uint64_t>(r) * calls + call % calls];
  }
  /// A slot of rank r in the long ring: what that rank writes here, the others only read.
  char* slot(int r, std::uint64_t chunk) const {
    return at<char>(slots_at_) + (static_cast<std::size_t>(r) * depth_ + chunk % depth_) * slot_;
  }
  /// A slot of rank r in the short ring: each part of it has one other rank, which reads it and writes to it again.
  char* folding_slot(int r, std::uint64_t chunk) const {
    return at<char>(folding_at_) + (static_cast<std::size_t>(r) * folding_depth + chunk % folding_depth) * slot_;
  }
  LinkLine& link(int from, int to) const { return at<LinkLine>(links_at_)[pair(from, to)]; }
  /// Where messages from one rank to another pass, as the sender has chosen.
  Ring ring(int from, int to) const {
    if (link(from, to).large.load(std::memory_order_relaxed)) return {larges_ + pair(from, to) * large_, large_};
    return {at<char>(rings_at_) + pair(from, to) * small_, small_};
  }
  /// Gives a link that is empty the large ring, for a message of so many bytes. Its memory is claimed here, so that links that
  /// carry little cost little; where the machine has none left, the small one has to do. Called by the sender.
  void grow_link(int from, int to, std::uint64_t bytes);
  std::size_t slot_bytes() const { return slot_; }
  std::size_t depth() const { return depth_; }

  bool failed() const { return at<Head>(0)->failed.load(std::memory_order_acquire) == 2; }
  std::string message() const { return at<Head>(0)->message; }
  /// The first message stays; all sleepers wake.
  void fail(const std::string& message) const;
  /// Rank r makes no further call; all sleepers wake.
  void retire(int r) const;
  bool is_gone(int r) const { return line(r).gone.load(std::memory_order_seq_cst) != 0; }

 private:
  struct alignas(128) Head {
    Counter failed{0};  // 1 while the message is written, 2 after
    char message[1500] = "";
  };
  std::size_t pair(int from, int to) const { return static_cast<std::size_t>(from) * n() + static_cast<std::size_t>(to); }
  std::size_t n() const { return static_cast<std::size_t>(ranks_); }
  template <class T> T* at(std::size_t offset) const { return reinterpret_cast<T*>(base_ + offset); }

  void wake() const;
  bool make(SharedFileText& text, OpenBy by);
  bool map(int file);
  void unmap();

  int ranks_ = 0;
  std::size_t slot_ = 0, depth_ = 4, lines_at_ = 0, signatures_at_ = 0, slots_at_ = 0, folding_at_ = 0, bytes_ = 0;
  std::size_t links_at_ = 0, rings_at_ = 0, small_ = 0, large_ = 0;  // bytes of a pair's rings
  char *base_ = nullptr, *larges_ = nullptr;
  int file_ = -1;
  bool full_ = false;  // no memory was left for a large ring
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "segment.ipp"
#endif
