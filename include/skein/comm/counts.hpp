// SPDX-License-Identifier: Apache-2.0
// What a rank has given to its communicator, as a plan says it beforehand and a counter afterwards.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Calls of collectives with the bytes that this rank gives (of a broadcast: of the span, on every rank), and messages sent with
/// theirs.
struct Counts {
  long collectives = 0, payload = 0;
  long messages = 0, bytes = 0;

  constexpr Counts& operator+=(const Counts& o) {
    collectives += o.collectives, payload += o.payload, messages += o.messages, bytes += o.bytes;
    return *this;
  }
  friend constexpr Counts operator+(Counts a, const Counts& b) { return a += b; }
  friend constexpr Counts operator-(const Counts& a, const Counts& b) {
    return {a.collectives - b.collectives, a.payload - b.payload, a.messages - b.messages, a.bytes - b.bytes};
  }
  friend constexpr Counts operator*(long n, const Counts& c) {
    return {n * c.collectives, n * c.payload, n * c.messages, n * c.bytes};
  }
  friend constexpr bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace skein::inline SKEIN_ABI::comm
