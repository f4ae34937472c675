// SPDX-License-Identifier: Apache-2.0
// What is asked of any communicator, and the answer of those that do not declare the capability.
#pragma once
#include <string>

#include "../core/clock.hpp"
#include "../core/error.hpp"
#include "capability.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Ranks on this rank's node; all of them, where the communicator does not know.
template <class C> int node_size(const C& c) {
  if constexpr (can<C, Capability::nodes>) return c.node_size();
  else return c.size();
}

/// This rank's place on its node; its rank, where the communicator does not know.
template <class C> int node_rank(const C& c) {
  if constexpr (can<C, Capability::node_places>) return c.node_rank();
  else return c.rank();
}

/// The ranks of this rank's node are threads of one process.
template <class C> bool one_process(const C& c) {
  if constexpr (can<C, Capability::processes>) return c.one_process();
  else return false;
}

/// Seconds until a rank that does not arrive is named.
template <class C> double deadline(const C& c) {
  if constexpr (can<C, Capability::deadlines>) return c.deadline();
  else return CommOptions{}.deadline;
}

/// Throws a CommError, on all ranks where the communicator can end them.
template <class C> [[noreturn]] void fail_all(C& c, const std::string& message) {
  if constexpr (can<C, Capability::failures>) c.fail(message);
  throw CommError(message);
}

/// The clock of the ranks in seconds: a simulated one's own, else the machine's.
template <class C> double now([[maybe_unused]] C& c) {
  if constexpr (can<C, Capability::clocks>) return c.now();
  else return seconds_now();
}

}  // namespace skein::inline SKEIN_ABI::comm
