// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_format.hpp.
#pragma once
#include "checkpoint_format.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string SectionInfo::text() const { return skein::text("{} ({})", type_name(type), joined(extents)); }

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
