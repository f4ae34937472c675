// SPDX-License-Identifier: Apache-2.0
// Collectives over MPI's messages, where ranks do not share memory. Reductions are an exchange of slices, a fold in the order
// of the ranks, and an exchange of results: as many bytes as a ring (2 (N - 1) / N B), the same bits as every other transport.
// Long buffers go in pieces, since Open MPI 4.1 counts in int. A state machine: step() never waits.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "../tags.hpp"
#include "../work.hpp"
#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The transport that works everywhere, in the order of the ranks.
class MessageTransport {
 public:
  static constexpr int tag = tags::in_order_of_ranks;

  MessageTransport(MPI_Comm comm, int rank, int ranks, std::size_t message);

  /// Makes `o` the current call. It stays alive until step() says that it is done.
  void begin(const CollectiveCall& o, std::uint64_t);
  bool done() const { return piece_ == pieces_; }
  /// The communicator has failed: receives are cancelled. What MPI may still read must stay, of the caller's memory what is an
  /// arena's.
  void keep();

  /// Goes on where messages have arrived; false where nothing could be done.
  bool step();

 private:
  enum Phase { Exchange, Fold, Finish };

  bool is_collective() const { return o_->signature.kind == Collective::Barrier || o_->signature.kind == Collective::Broadcast; }
  const char* name() const { return collective_names[static_cast<int>(o_->signature.kind)].data(); }
  void send(const void* data, std::size_t bytes, int to);
  void recv(void* data, std::size_t bytes, int from);
  template <class F> void others(F&& f) {
    for (int d = 1; d < ranks_; ++d) f((rank_ + d) % ranks_);
  }

  Piece part(Piece whole) const;
  // Rank r's slice of a reduction's piece; a short buffer goes whole to everyone.
  Piece slice(int r) const;
  bool receives() const { return o_->signature.kind != Collective::Reduce || rank_ == o_->signature.root; }
  char* scratch(int r, std::size_t bytes) { return scratch_.data() + static_cast<std::size_t>(r) * bytes; }
  void need_scratch(std::size_t bytes);

  void exchange();
  // Everyone's values of this rank's slice come to scratch; the others' slices go out.
  template <class SliceOf> void gather_slices(SliceOf&& of) {
    const CollectiveCall& o = *o_;
    const Piece own = of(rank_);
    need_scratch(o.bytes(own.count) * static_cast<std::size_t>(ranks_ + 1));
    others([&](int q) {
      if (own.count) recv(scratch(q, o.bytes(own.count)), o.bytes(own.count), q);
    });
    others([&](int q) {
      if (const Piece c = of(q); c.count) send(o.from() + o.bytes(c.offset), o.bytes(c.count), q);
    });
  }

  // Everyone's piece comes; sent(q) of this rank's goes to q.
  template <class Sent> void collect_pieces(Sent&& sent) {
    const CollectiveCall& o = *o_;
    others([&](int q) {
      if (const Piece c = part(o.piece(q)); c.count) recv(o.into() + o.bytes(c.offset), o.bytes(c.count), q);
    });
    others([&](int q) {
      if (const Piece c = sent(q); c.count) send(o.from() + o.bytes(c.offset), o.bytes(c.count), q);
    });
    const Piece own = sent(rank_);
    copy_bytes(o.into() + o.bytes(part(o.piece(rank_)).offset), o.from() + o.bytes(own.offset), o.bytes(own.count));
  }

  // A broadcast, which cannot be cancelled, works in the caller's memory where that is an arena's, else in scratch.
  void broadcast();
  void fold();

  MPI_Comm comm_;
  int rank_, ranks_;
  std::size_t message_;
  Pointers pointers_;
  std::vector<MPI_Request> requests_;
  std::size_t receives_ = 0;  // of requests_, the first
  std::vector<char> scratch_;
  const CollectiveCall* o_ = nullptr;
  std::size_t piece_ = 0, pieces_ = 0, per_piece_ = 0;
  Phase phase_ = Exchange;
  bool whole_ = false, outlives_ = false;  // of a broadcast: its memory is an arena's
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "message_transport.ipp"
#endif
