// SPDX-License-Identifier: Apache-2.0
// Collectives between processes of one node, through the slots of a Segment: a rank copies what others need into its slot; each
// folds its slice out of all slots and writes the sum back into them; a rank copies the sums out of its own slot. So a cache line
// goes to the rank that folds it and comes back, written both times: processors hand such lines on at the speed of a read, while
// a store to a line that another core has only read waits for that core to give it up (a half to a quarter of the speed, a tenth
// where the cores share no cache). Chunks follow each other through a ring, so that copying, folding and waiting overlap. A state
// machine (chunk_steps.hpp): step() never waits.
// An all-reduce whose spans lie in shared pages (NodePages), at one place on all ranks, needs no slots: once all have come, each
// folds its slice of all spans where they are, and is done when all have.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../work.hpp"
#include "chunk_steps.hpp"
#include "node_pages.hpp"
#include "segment.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The transport of ranks on one node, in the order of the ranks. One call at a time.
class SharedTransport {
 public:
  enum { In = 0, Folded = 1, Taken = 2 };  // the counters of a line, in chunks since the start

  /// `chunks`: as many have passed through the segment before (tests begin where the 32-bit counters of the lines wrap).
  /// `asks`: for lines, before it reads what it will write.
  SharedTransport(const Segment& segment, int rank, RankNames ranks, std::uint64_t chunks = 0, bool asks = !reads_take_lines());

  /// From here on all-reduces in these pages copy nothing. All ranks do so between the same calls.
  void add(const std::shared_ptr<NodePages>& pages);
  /// Signature::shared_at of the call: 0 too where it is so short that one rendezvous is worth more than copies.
  std::uint64_t shared_at(const CollectiveCall& o) const;
  /// The communicator has failed: nobody else writes into this rank's pages any more.
  void withdraw();

  /// Makes `o` the current call. It stays alive until step() says that it is done.
  void begin(const CollectiveCall& o, std::uint64_t call);
  /// All chunks of the current call have passed.
  bool done() const { return own_.taken == chunks_.count; }

  /// One piece of work of the current call; false where it lacks need().
  bool step();
  /// What the oldest unfinished chunk lacks.
  const Need& need() const { return need_; }
  /// Whether rank r is among those that it lacks.
  bool lacks(int r) const;
  /// The sentence on those that it has lacked for so many seconds; empty where it lacks nobody any more.
  std::string missing_text(double seconds) const;
  /// The sentence on those that it lacks and that have left; empty where there are none. A rank says that it has left after all
  /// else, so it is asked for that before what it has done is looked at.
  std::string departed_text(OfRank<bool> has_left) const;
  /// Rank r has at least begun the current call.
  bool has_begun(int r) const { return Need{&segment_.line(r), In, number(1)}.met(); }

 private:
  static constexpr std::size_t one_phase_bytes = 16384;  // below, one rendezvous is worth more than a second fold (measured)
  static constexpr std::size_t asked_bytes = 4096;       // lines are asked for so many bytes ahead

  // Chunk i of the current call among those of all calls, and what counters, which wrap, say of it.
  std::uint64_t chunk(std::int64_t i) const { return base_ + static_cast<std::uint64_t>(i); }
  std::uint32_t number(std::int64_t i) const { return static_cast<std::uint32_t>(chunk(i)); }
  /// How far the ranks that this one waits for have come since the beginning of the call, at least: one look at each of them.
  ChunkCounts look() const;
  /// "barrier (call 3): rank 1", and before it the public call that `who`, who are absent, have not made.
  std::string call_text(const std::string& who, bool absent) const;
  /// What the awaited step lacks.
  Need lacking() const;

  // Ranks compare what they call before they touch a byte.
  void compare();

  // The current call begins in the shared pages that its signature names.
  void find_pages();

  // The part of `whole`, which is in values, that belongs to chunk i, in units.
  Piece part(Piece whole, std::int64_t i) const;
  std::size_t bytes(std::size_t units) const { return units * unit_; }
  Piece slice(Piece chunk, int r) const { return slice_of(chunk.count, o_->signature.element, r, ranks_); }
  /// Each part of a slot has one reader, which writes to it: the short ring will do.
  bool written_back() const { return chunks_.folds || o_->signature.kind == Collective::ReduceScatter; }
  char* slot(int r, std::int64_t i) const {
    return written_back() ? segment_.folding_slot(r, chunk(i)) : segment_.slot(r, chunk(i));
  }
  char* sub_slot(int r, int q, std::int64_t i) const { return slot(r, i) + static_cast<std::size_t>(q) * sub_slot_; }
  bool receives() const { return o_->signature.kind != Collective::Reduce || rank_ == o_->signature.root; }

  void fill(std::int64_t i);

  // Where rank r's values lie that this rank folds: `user` bytes from the beginning of its span, `inside` its slot.
  char* operand(int r, std::int64_t i, std::size_t user, std::size_t inside) const {
    return pages_ ? pages_->part(r) + offset_ + user : slot(r, i) + inside;
  }

  void fold_slice(std::int64_t i);
  // Sums out of this rank's slot, which it fills again.
  void take_sums(char* to, const char* from, std::size_t bytes);

  // What the call wants of chunk i, out of the slots.
  void take(std::int64_t i);
  void take_reduced(const CollectiveCall& o, std::int64_t i);
  void take_scattered(const CollectiveCall& o, std::int64_t i);

  /// Pages of all ranks, and what shared_at counts up to their beginning.
  struct Shared {
    std::uint64_t begin = 0;
    std::weak_ptr<NodePages> pages{};
  };

  const Segment& segment_;
  RankNames names_;
  int rank_, ranks_;
  bool asks_;
  std::vector<Shared> shared_;
  std::uint64_t shared_end_ = 64;     // no place is counted twice, and none is 0
  const NodePages* pages_ = nullptr;  // of the current call; its span, and so they, live until it is done
  std::size_t offset_ = 0;            // of its span in each part
  Pointers pointers_;
  Line& line_;
  const CollectiveCall* o_ = nullptr;
  std::uint64_t call_ = 0, base_;  // chunks of all calls before
  ChunkCall chunks_{.count = 0};
  ChunkCounts own_;
  // What a chunk counts, in bytes: a value where values are folded; else one, so that values of any size pass through the slots.
  std::size_t unit_ = 1;
  std::size_t per_chunk_ = 0, sub_slot_ = 0;  // in units; in bytes
  bool compared_ = false;
  std::uint64_t broadcasts_ = 0;  // calls before the current one of which not all ranks have compared all signatures
  Need need_;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "shared_transport.ipp"
#endif
