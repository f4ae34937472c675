// SPDX-License-Identifier: Apache-2.0
// What CommOptions::check asks for: before a collective over messages begins, all ranks exchange what they are about to call.
#pragma once
#include <string>
#include <vector>

#include "../collective_call.hpp"
#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// A state machine: step() never waits.
class SignatureCheck {
 public:
  static constexpr int tag = 32102;

  SignatureCheck(MPI_Comm comm, int rank, int ranks)
      : comm_(comm), rank_(rank), ranks_(ranks), signatures_(static_cast<std::size_t>(ranks)) {
    requests_.reserve(2 * static_cast<std::size_t>(ranks));
  }

  void begin(const Signature& own, std::uint64_t call) {
    call_ = call;
    at(rank_) = own;
    others([&](int q) {
      check_mpi(MPI_Irecv(&at(q), sizeof(Signature), MPI_BYTE, q, tag, comm_, &requests_.emplace_back()), "comparing calls");
    });
    others([&](int q) {
      check_mpi(MPI_Isend(&at(rank_), sizeof(Signature), MPI_BYTE, q, tag, comm_, &requests_.emplace_back()), "comparing calls");
    });
  }
  /// True once all ranks have said the same. Throws CommError with the groups where they do not.
  bool step() {
    if (!test_all(requests_, false, "comparing calls")) return false;
    for (const Signature& s : signatures_)
      if (!(s == at(rank_))) throw CommError(mismatch_text(call_, ranks_, [&](int r) -> const Signature& { return at(r); }));
    return true;
  }

 private:
  Signature& at(int r) { return signatures_[static_cast<std::size_t>(r)]; }
  template <class F> void others(F&& f) {
    for (int d = 1; d < ranks_; ++d) f((rank_ + d) % ranks_);
  }

  MPI_Comm comm_;
  int rank_, ranks_;
  std::vector<Signature> signatures_;
  std::vector<MPI_Request> requests_;
  std::uint64_t call_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
