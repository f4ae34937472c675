// SPDX-License-Identifier: Apache-2.0
// The bodies of signature_check.hpp.
#pragma once
#include <utility>

#include "signature_check.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE SignatureCheck::SignatureCheck(MPI_Comm comm, int rank, RankNames ranks)
    : comm_(comm), names_(std::move(ranks)), rank_(rank), ranks_(names_.size()), signatures_(static_cast<std::size_t>(ranks_)) {
  requests_.reserve(2 * signatures_.size());
}

SKEIN_MPI_INLINE void SignatureCheck::begin(const Signature& own, std::uint64_t call) {
  call_ = call;
  at(rank_) = own;
  others([&](int q) {
    check_mpi(MPI_Irecv(&at(q), sizeof(Signature), MPI_BYTE, q, tag, comm_, &requests_.emplace_back()), "comparing calls");
  });
  others([&](int q) {
    check_mpi(MPI_Isend(&at(rank_), sizeof(Signature), MPI_BYTE, q, tag, comm_, &requests_.emplace_back()), "comparing calls");
  });
}

SKEIN_MPI_INLINE bool SignatureCheck::step() {
  if (!test_all(requests_, false, "comparing calls")) return false;
  for (const Signature& s : signatures_)
    if (!(s == at(rank_))) throw CommError(mismatch_text(call_, names_, [&](int r) -> const Signature& { return at(r); }));
  return true;
}

SKEIN_MPI_INLINE void SignatureCheck::keep() {
  if (requests_.empty()) return;
  static auto* const kept = new std::vector<std::vector<Signature>>;  // never destroyed, as MPI may be at work until the end
  kept->push_back(std::move(signatures_));
  requests_.clear();
  signatures_.assign(static_cast<std::size_t>(ranks_), {});
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
