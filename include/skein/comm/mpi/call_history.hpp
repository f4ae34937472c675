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

namespace skein::inline SKEIN_ABI::comm {

/// The end of a rank's history, as it travels: calls [calls - shown, calls), and the hash of those before.
struct RecentCalls {
  static constexpr std::uint64_t most = 16;
  std::uint64_t calls = 0, shown = 0, hash_before = 0;
  Signature signature[most];
};

/// The calls of one rank. Kept without an allocation; compared with what another rank says of its own.
class CallHistory {
 public:
  /// The next call. Costs some tens of nanoseconds.
  void add(const Signature& s) {
    Entry& e = entries_[calls_++ % kept];
    e.hash_before = hash_;
    e.signature = s;
    hash_ = Fnv1a{}.add(hash_).add(hash_bytes(&s, sizeof s)).value();
  }
  std::uint64_t calls() const { return calls_; }

  RecentCalls recent() const {
    RecentCalls r;
    r.calls = calls_;
    r.shown = std::min(calls_, RecentCalls::most);
    const std::uint64_t first = calls_ - r.shown;
    r.hash_before = r.shown ? entry(first).hash_before : hash_;
    for (std::uint64_t i = 0; i < r.shown; ++i) r.signature[i] = entry(first + i).signature;
    return r;
  }

  /// A sentence for the first call that differs, as far as both ranks have come; nothing where none does, or where the other's
  /// calls are too long ago.
  std::optional<std::string> difference(const RecentCalls& other, int other_rank, int own_rank) const {
    const std::uint64_t shown = std::min(other.shown, RecentCalls::most), first = other.calls - shown;
    if (other.calls < shown || first + kept < calls_ || first >= calls_) return std::nullopt;
    if (other.hash_before != entry(first).hash_before)
      return "collective calls before call " + std::to_string(first) + " differ between rank " + std::to_string(other_rank) +
             " and rank " + std::to_string(own_rank) +
             ". Every rank must make the same calls in the same order; SKEIN_CHECK=1 names "
             "the first that differs";
    for (std::uint64_t i = 0; i < shown && first + i < calls_; ++i)
      if (!(other.signature[i] == entry(first + i).signature)) {
        const Signature own = entry(first + i).signature;
        const int low = std::min(own_rank, other_rank), high = std::max(own_rank, other_rank);
        return "collective call " + std::to_string(first + i) + " differs between ranks: rank " + std::to_string(low) + ": " +
               describe(low == own_rank ? own : other.signature[i]) + "; rank " + std::to_string(high) + ": " +
               describe(high == own_rank ? own : other.signature[i]) + ". Every rank must make the same calls in the same order";
      }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kept = 256;  // more than can be in flight
  struct Entry {
    std::uint64_t hash_before = 0;
    Signature signature;
  };
  const Entry& entry(std::uint64_t call) const { return entries_[call % kept]; }

  std::array<Entry, kept> entries_{};
  std::uint64_t calls_ = 0, hash_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
