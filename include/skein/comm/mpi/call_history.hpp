// SPDX-License-Identifier: Apache-2.0
// Which collectives a rank has called: the last ones by their signatures, all of them by one hash. MPI does not compare what its
// ranks call; ranks that exchange their histories now and then find what differed, without a message for each call.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../collective_call.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The end of a rank's history, as it travels: calls [calls - shown, calls), and the hash of those before.
struct RecentCalls {
  static constexpr std::uint64_t most = 64;
  std::uint64_t calls = 0, shown = 0, hash_before = 0;
  Signature signature[most];
};

/// The calls of one rank. Kept without an allocation; compared with what another rank says of its own.
class CallHistory {
 public:
  /// The next call. Costs some tens of nanoseconds.
  void add(const Signature& s);
  std::uint64_t calls() const { return calls_; }

  RecentCalls recent() const;

  /// A sentence for the first call that differs, as far as both ranks have come; nothing where none does, or where the other's
  /// calls are too long ago.
  std::optional<std::string> difference(const RecentCalls& other, int other_rank, int own_rank,
                                        const RankNames& names = {}) const;

 private:
  static constexpr std::uint64_t kept = 256;  // more than can be in flight, and than pass until another's are looked at
  struct Entry {
    std::uint64_t hash_before = 0;
    Signature signature;
  };
  const Entry& entry(std::uint64_t call) const { return entries_[call % kept]; }

  std::array<Entry, kept> entries_{};
  std::uint64_t calls_ = 0, hash_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "call_history.ipp"
#endif
