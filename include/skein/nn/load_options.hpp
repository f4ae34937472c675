// SPDX-License-Identifier: Apache-2.0
// Which of a file's weights a model takes.
#pragma once
#include <string>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI {

/// Options of Model::load and Trainer::load_weights: `{.only = "0.*"}` takes parameters and buffers of such names (`*` any
/// text, dots too; `?` one letter) and leaves the others as they are; `{.except = "13.*"}` takes all but those of such names:
/// the body of a network that gets another head. Both: what `only` names without what `except` names. Empty: all of them, and
/// the file may have no others.
struct LoadOptions {
  std::string only{}, except{};
  bool whole() const { return only.empty() && except.empty(); }  ///< all of a file's weights
};

}  // namespace skein::inline SKEIN_ABI
