// SPDX-License-Identifier: Apache-2.0
// The bodies of options.hpp.
#pragma once
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

SKEIN_INLINE double CommOptions::environment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end != text && value >= 0 ? value : otherwise;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
