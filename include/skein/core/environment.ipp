// SPDX-License-Identifier: Apache-2.0
// The bodies of environment.hpp.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "environment.hpp"
#include "error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE double environment_number(const char* name, double otherwise, const EnvironmentNumber& form) {
  const char* const set = std::getenv(name);
  const std::string_view text = set ? set : "";
  if (text.empty()) return otherwise;
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || !(value >= form.least && value <= form.most) ||
      (form.whole && value != std::trunc(value)))
    throw ArgumentError(skein::text("{} is {}: it has to be {}", name, in_quotes(text), form.wanted));
  return value;
}

SKEIN_INLINE bool environment_switch(const char* name, bool otherwise) {
  return environment_number(name, otherwise ? 1 : 0, {"0 or 1", 0, 1, true}) != 0;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
