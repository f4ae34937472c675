// SPDX-License-Identifier: Apache-2.0
// Parameters of a pipeline that are one, in two stages: their names.
#pragma once
#include <string>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Two parameters of the same extents, by their names in the whole network, that are one: they begin as the first, and each step
/// moves both by the sum of their gradients, which counts once in a norm.
struct TiedParameters {
  std::string first, second;
};

}  // namespace skein::inline SKEIN_ABI::parallel
