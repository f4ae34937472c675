// SPDX-License-Identifier: Apache-2.0
// Work on files that takes its time on some rank, while no rank waits for long in one collective: a slow disk is no rank that
// hangs.
#pragma once
#include <functional>

#include "../core/config.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Runs work() in a thread of its own, and asks at every few hundredths of a second, and once after its end, whether any rank is
/// busy: any_is_busy(this one is) is a short sum over the ranks, so that only a rank that is gone reaches the deadline of a
/// communicator. Returns when none is. Throws what the two throw, when work() has ended.
void while_busy(const std::function<void()>& work, const std::function<bool(bool)>& any_is_busy);

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "while_busy.ipp"
#endif
