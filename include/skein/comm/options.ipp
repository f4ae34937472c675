// SPDX-License-Identifier: Apache-2.0
// The bodies of options.hpp.
#pragma once
#include "../core/text.hpp"
#include "options.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE ReductionOrder CommOptions::order_of_environment() {
  const char* const text = std::getenv("SKEIN_REDUCTION_ORDER");
  const std::string_view order = text ? text : "";
  if (order.empty()) return ReductionOrder::automatic;
  if (order == "ranks") return ReductionOrder::ranks;
  if (order == "native") return ReductionOrder::native;
  throw ArgumentError("SKEIN_REDUCTION_ORDER is " + in_quotes(order, '"') + ": it has to be ranks or native");
}

SKEIN_INLINE double CommOptions::deadline_of_environment() {
  return environment_number("SKEIN_DEADLINE", 600, {"seconds, more than 0, or inf", 1e-9});
}

SKEIN_INLINE int CommOptions::node_size_of_environment() {
  return static_cast<int>(environment_number("SKEIN_NODE_SIZE", 0, {"a whole number of ranks", 0, 1e9, true}));
}

SKEIN_INLINE double comm::checked_deadline(double seconds, const char* of) {
  if (seconds > 0) return seconds;
  throw ArgumentError(text("{}: a deadline is seconds, more than 0 (infinity for none); it is {}", of, seconds));
}

SKEIN_INLINE const CommOptions& comm::checked_options(const CommOptions& o) {
  (void)checked_deadline(o.deadline, "CommOptions");
  if (o.node_size >= 0) return o;
  throw ArgumentError(text("CommOptions: .node_size is a number of ranks, 0 for those of one machine; it is {}", o.node_size));
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
