// SPDX-License-Identifier: Apache-2.0
// skein::compiled: the bodies of core/, device/ and draw/.
#include <skein/core/atomic_file.ipp>
#include <skein/core/cpu_quota.ipp>
#include <skein/core/environment.ipp>
#include <skein/core/error.ipp>
#include <skein/core/flags.ipp>
#include <skein/core/input_file.ipp>
#include <skein/core/named_values.ipp>
#include <skein/core/run.ipp>
#include <skein/core/step_clock.ipp>
#include <skein/core/text.ipp>
#include <skein/core/workers.ipp>
#include <skein/device/kept_memory.ipp>
#include <skein/device/memory.ipp>
#include <skein/draw/axis.ipp>
#include <skein/draw/plot.ipp>
#include <skein/draw/svg.ipp>

#if !SKEIN_COMPILED
#error "skein::compiled is built with SKEIN_COMPILED=1, as what is linked to it"
#endif

namespace skein::inline SKEIN_ABI {
void this_library_was_built_with_other_options_or_instruction_set() {}
}  // namespace skein::inline SKEIN_ABI
