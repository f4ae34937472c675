// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_format.hpp.
#pragma once
#include "checkpoint_format.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string SectionInfo::text() const {
  std::string text = std::string(type_name(type)) + " (";
  for (const std::int64_t extent : extents) text += (text.back() == '(' ? "" : ", ") + std::to_string(extent);
  return text + ")";
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
