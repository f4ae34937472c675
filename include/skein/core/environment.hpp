// SPDX-License-Identifier: Apache-2.0
// Numbers and switches that a user sets in the environment. A text that is none of them is refused by name: a deadline or a
// number of threads that is silently another than was written is found late.
#pragma once
#include <limits>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// What a number has to be.
struct EnvironmentNumber {
  const char* wanted = "a number from 0 on";  ///< for the message
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool whole = false;
};

/// The number that a variable holds, or `otherwise` where it is not set or empty. Throws ArgumentError for another text, and for
/// a number that is not wanted.
double environment_number(const char* name, double otherwise, const EnvironmentNumber& form = {});
/// Whether a variable is 1, not 0; `otherwise` where it is not set or empty. Throws ArgumentError for another text.
bool environment_switch(const char* name, bool otherwise);

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "environment.ipp"
#endif
