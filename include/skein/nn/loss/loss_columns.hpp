// SPDX-License-Identifier: Apache-2.0
// Where each part of a loss of several outputs finds its columns: in a row of outputs, and in a row of targets.
#pragma once
#include <concepts>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Where a loss finds its columns.
struct LossColumns {
  long output = 0, width = 0;   ///< in a row of outputs
  long target = 0, values = 0;  ///< in a row of targets
  bool labels = false;          ///< its target is a class number
};

/// A loss of several outputs says where each of its losses is: static constexpr std::array<LossColumns, N> columns.
template <class L> concept HasLossColumns = requires {
  { L::columns[0] } -> std::convertible_to<LossColumns>;
};

}  // namespace skein::inline SKEIN_ABI::nn
