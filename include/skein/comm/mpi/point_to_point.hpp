// SPDX-License-Identifier: Apache-2.0
// Messages between two processes, as started and polled MPI calls; longer ones in pieces that follow each other. Kept in a pool.
#pragma once
#include <algorithm>
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
  PointToPoint(MPI_Comm comm, std::size_t message) : comm_(comm), message_(std::max<std::size_t>(message, 4096)) {}

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
  std::string describe(const Ticket& t) const { return pool_[static_cast<std::size_t>(t.message)].text(); }

 private:
  /// `came`: what has arrived, or left, in pieces.
  struct MpiTransfer : Transfer {
    std::size_t piece = 0;
    int result = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  // True where a piece has arrived or left.
  bool advance(MpiTransfer& t);
  void next_piece(MpiTransfer& t);

  MPI_Comm comm_;
  std::size_t message_;
  std::vector<MpiTransfer> pool_;
  int active_ = 0;
  bool kept_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "point_to_point.ipp"
#endif
