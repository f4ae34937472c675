// SPDX-License-Identifier: Apache-2.0
// What CommOptions::check asks for: before a collective over messages begins, all ranks exchange what they are about to call.
#pragma once
#include <string>
#include <vector>

#include "../collective_call.hpp"
#include "../tags.hpp"
#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// A state machine: step() never waits.
class SignatureCheck {
 public:
  static constexpr int tag = tags::signatures;

  SignatureCheck(MPI_Comm comm, int rank, RankNames ranks);

  void begin(const Signature& own, std::uint64_t call);
  /// True once all ranks have said the same. Throws CommError with the groups where they do not.
  bool step();
  /// The communicator has failed: what others may still send comes into memory that stays.
  void keep();

 private:
  Signature& at(int r) { return signatures_[static_cast<std::size_t>(r)]; }
  template <class F> void others(F&& f) {
    for (int d = 1; d < ranks_; ++d) f((rank_ + d) % ranks_);
  }

  MPI_Comm comm_;
  RankNames names_;
  int rank_, ranks_;
  std::vector<Signature> signatures_;
  std::vector<MPI_Request> requests_;
  std::uint64_t call_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "signature_check.ipp"
#endif
