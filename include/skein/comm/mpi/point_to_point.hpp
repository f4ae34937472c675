// SPDX-License-Identifier: Apache-2.0
// Messages between two processes, as started and polled MPI calls; longer ones in pieces that follow each other. Kept in a pool.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "../request.hpp"
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
  /// PointToPoint that are not complete.
  int active() const { return active_; }
  std::string describe(const Ticket& t) const { return describe(pool_[static_cast<std::size_t>(t.message)]); }

 private:
  struct Transfer {
    bool active = false, complete = false, sends = false;
    char* data = nullptr;
    std::size_t bytes = 0, done = 0, piece = 0;
    int peer = 0, tag = 0, result = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static std::string describe(const Transfer& t);
  // True where a piece has arrived or left.
  bool advance(Transfer& t);
  void next_piece(Transfer& t);

  MPI_Comm comm_;
  std::size_t message_;
  std::vector<Transfer> pool_;
  int active_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "point_to_point.ipp"
#endif
