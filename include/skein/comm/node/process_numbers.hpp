// SPDX-License-Identifier: Apache-2.0
// Whether two ranks run where the number of a process means the same.
#pragma once
#include <cstdint>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Numbers of processes mean the same where this is the same: on a machine since it started, and in one namespace of it. 0: not
/// known.
std::uint64_t process_numbers();

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "process_numbers.ipp"
#endif
