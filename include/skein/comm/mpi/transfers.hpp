// SPDX-License-Identifier: Apache-2.0
// Messages between two processes, as started and polled MPI calls; longer ones in pieces that follow each other. Kept in a pool.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "../request.hpp"
#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

class Transfers {
 public:
  Transfers(MPI_Comm comm, std::size_t message) : comm_(comm), message_(std::max<std::size_t>(message, 4096)) {}

  Ticket start(bool sends, void* data, std::size_t bytes, int peer, int tag) {
    std::size_t i = 0;
    while (i < pool_.size() && pool_[i].active) ++i;
    if (i == pool_.size()) pool_.emplace_back();
    Transfer& t = pool_[i];
    t = {true, sends, static_cast<char*>(data), bytes, 0, peer < 0 ? MPI_ANY_SOURCE : peer, tag, MPI_REQUEST_NULL};
    next_piece(t);
    ++active_;
    return {0, static_cast<std::int32_t>(i), peer};
  }
  bool test(Ticket& ticket) {
    Transfer& t = pool_[static_cast<std::size_t>(ticket.message)];
    while (true) {
      int done = 0;
      MPI_Status status;
      const int result = MPI_Test(&t.request, &done, &status);
      if (result != MPI_SUCCESS) {
        release(t);
        int kind = 0;
        MPI_Error_class(result, &kind);
        if (kind == MPI_ERR_TRUNCATE) throw CommError(describe(t) + ": the message is longer than the receiver's span of " + std::to_string(t.bytes) + " bytes");
        check_mpi(result, t.sends ? "send" : "recv");
      }
      if (!done) return false;
      const std::size_t piece = std::min(message_, t.bytes - t.done);
      if (!t.sends) {
        int got = 0;
        MPI_Get_count(&status, MPI_BYTE, &got);
        t.peer = status.MPI_SOURCE;
        if (static_cast<std::size_t>(got) != piece) {
          release(t);
          throw CommError(describe(t) + ": the message has " + std::to_string(t.done + static_cast<std::size_t>(got)) + " bytes, the receiver's span " +
                          std::to_string(t.bytes));
        }
      }
      t.done += piece;
      if (t.done == t.bytes) break;
      next_piece(t);
    }
    ticket.peer = t.peer;
    release(t);
    return true;
  }
  /// Transfers that are not complete.
  int active() const { return active_; }
  std::string describe(const Ticket& t) const { return describe(pool_[static_cast<std::size_t>(t.message)]); }

 private:
  struct Transfer {
    bool active = false, sends = false;
    char* data = nullptr;
    std::size_t bytes = 0, done = 0;
    int peer = 0, tag = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static std::string describe(const Transfer& t) {
    return std::string(t.sends ? "send to " : "recv from ") + (t.peer < 0 ? "any rank" : "rank " + std::to_string(t.peer)) + " (tag " +
           std::to_string(t.tag) + ")";
  }
  void release(Transfer& t) {
    t.active = false;
    --active_;
  }
  void next_piece(Transfer& t) {
    const int n = static_cast<int>(std::min(message_, t.bytes - t.done));
    if (t.sends) check_mpi(MPI_Isend(t.data + t.done, n, MPI_BYTE, t.peer, t.tag, comm_, &t.request), "send");
    else check_mpi(MPI_Irecv(t.data + t.done, n, MPI_BYTE, t.peer, t.tag, comm_, &t.request), "recv");
  }

  MPI_Comm comm_;
  std::size_t message_;
  std::vector<Transfer> pool_;
  int active_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
