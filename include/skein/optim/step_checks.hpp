// SPDX-License-Identifier: Apache-2.0
// What every step of an optimizer is asked before it is made, in fit and by hand: factor of the rate, norm to clip by,
// accumulation.
#pragma once
#include "../core/error.hpp"
#include "../core/text.hpp"
#include "step_options.hpp"
#include "transform/transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

namespace detail {
[[noreturn]] SKEIN_NOINLINE inline void refuse_clip_norm(const char* who, double norm) {
  throw ArgumentError(
      text("{}: .clip_norm is {}: it is the largest norm that gradients keep, above 1.2e-38; 0: none", who, norm));
}
[[noreturn]] SKEIN_NOINLINE inline void refuse_lr_factor(double factor) {
  throw ArgumentError(text("step: .lr_factor is {}: a factor of the rate is finite and not negative", factor));
}
[[noreturn]] SKEIN_NOINLINE inline void refuse_accumulation() {
  throw ArgumentError(
      "step: .accumulate adds to the gradients of the calls before, of which none waits for its update: leave it out in the "
      "first "
      "call of each step, and say .update = false in all but the last");
}
}  // namespace detail
/// Before a call of a step by hand, of which so many calls have gone: those are given up, unless this one adds to their
/// gradients. Throws ArgumentError where there are none to add to.
inline void join_accumulation(bool adds, long& calls) {
  if (!adds) calls = 0;
  else if (calls == 0) [[unlikely]] detail::refuse_accumulation();
}
/// Throws ArgumentError for what is no norm to clip by: the option .clip_norm of `who`.
inline void check_clip_norm(const char* who, double norm) {
  if (!(norm == 0 || norm >= 1.2e-38)) [[unlikely]]  // in single precision less is 0, and would clip nothing
    detail::refuse_clip_norm(who, norm);
}
/// Throws ArgumentError for what no step can be made with: an .lr_factor that is negative, infinite or no number, and a
/// .clip_norm that is no norm.
inline void check_step(const StepOptions& o) {
  if (!(o.lr_factor >= 0 && o.lr_factor <= 3.4e38)) [[unlikely]]
    detail::refuse_lr_factor(o.lr_factor);
  check_clip_norm("step", o.clip_norm);
}
/// The norm to clip by in one step: what was asked for the step, or what O begins with. Throws ArgumentError for both.
template <class O> double clip_norm_of(const O& o, double asked) {
  if constexpr (HasClipNorm<O>) {
    if (asked > 0)
      throw ArgumentError(".clip_norm and a ClipNorm in the optimizer's chain would clip twice: leave one of them out");
    return o.clip_norm();
  } else {
    return asked;
  }
}

}  // namespace skein::inline SKEIN_ABI::optim
