// SPDX-License-Identifier: Apache-2.0
// The bodies of data_check.hpp.
#pragma once
#include "data_check.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE std::string shape_text(const Extents& e) {
  std::string text = e.tokens ? "Tokens<" : "Shape<";
  for (int i = 0; i < e.rank; ++i) text += (i ? ", " : "") + std::to_string(e[i]);
  return text + ">";
}

}  // namespace skein::inline SKEIN_ABI::train::detail
