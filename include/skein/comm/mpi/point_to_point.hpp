// SPDX-License-Identifier: Apache-2.0
// Messages between two processes, as started and polled MPI calls; longer ones in pieces that follow each other, none of another
// message of that pair and tag between them. All pieces but the last are of one length, and the last is shorter (where need be
// empty), so that a receiver sees where a message ends. Kept in a pool.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../request.hpp"
#include "../transfer.hpp"
#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// Messages by MPI: started, polled, kept in a pool.
class PointToPoint {
 public:
  PointToPoint(MPI_Comm comm, RankNames names, std::size_t message)
      : comm_(comm), names_(std::move(names)), message_(std::clamp<std::size_t>(message, 4096, longest)) {}

  Ticket start(bool sends, void* data, std::size_t bytes, int peer, int tag);
  bool test(Ticket& ticket);
  /// Moves all that is under way, so that a rank that waits for one thing does not hold up another: an MPI library moves a
  /// message inside its calls only, and what waits in shared memory makes none.
  bool progress();
  /// The communicator has failed: receives are cancelled, and nothing moves any more. What MPI may still read must stay; of the
  /// caller's memory that is an arena's.
  void keep();
  /// Transfers that nobody has seen complete.
  int active() const { return active_; }
  std::string describe(const Ticket& t) const { return pool_[static_cast<std::size_t>(t.message)].text(names_); }

 private:
  /// `came`: what has arrived, or left, in pieces; `waits`: MPI has no piece of it yet; `ends`: only the empty piece behind the
  /// others is missing.
  struct MpiTransfer : Transfer {
    bool waits = false, ends = false;
    std::size_t piece = 0;
    int result = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  // MPI knows the order of pieces that it has been given: one with pieces still to come holds up what was started after it and
  // could take or be taken for them.
  bool is_held_up(const MpiTransfer& t) const;
  // True where a piece has arrived or left, or the first has been given to MPI.
  bool advance(MpiTransfer& t);
  void next_piece(MpiTransfer& t);
  // Looked at before it is received: of a longer one Open MPI 4.1 writes what does not fit behind the span.
  bool end_is_there(MpiTransfer& t);

  static constexpr std::size_t longest = std::size_t{1} << 30;  // bytes of a piece: MPI counts in int
  MPI_Comm comm_;
  RankNames names_;
  std::size_t message_;
  std::uint64_t started_ = 0;
  std::vector<MpiTransfer> pool_;
  int active_ = 0;
  bool kept_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "point_to_point.ipp"
#endif
