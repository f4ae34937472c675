// SPDX-License-Identifier: Apache-2.0
// The bodies of error.hpp.
#pragma once
#include "error.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE FileError::FileError(const std::string& path, long long offset, const std::string& what, SourceLocation where)
    : Error(offset >= 0 ? text("{} (byte {}): {}", path, offset, what) : text("{}: {}", path, what), where), path_(path),
      offset_(offset) {}

}  // namespace skein::inline SKEIN_ABI
