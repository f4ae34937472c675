// SPDX-License-Identifier: Apache-2.0
// The bodies of fit_control.hpp.
#pragma once
#include "../core/error.hpp"
#include "../core/text.hpp"
#include "fit_control.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void FitControl::stop(std::string_view reason) {
  if (stopping_) return;
  stopping_ = true;
  reason_[reason.copy(reason_.data(), reason_.size() - 1)] = '\0';
}

SKEIN_INLINE void FitControl::agree_to_stop(bool all, std::string_view reason) {
  if (all) return stop(reason);
  stopping_ = false;
  reason_ = {};
}

SKEIN_INLINE void FitControl::set_rate_factor(double factor) {
  if (!(factor >= 0 && factor < 1e300))
    throw ArgumentError(text("FitControl::set_rate_factor({}): the factor of the rate is a finite number, 0 or more", factor));
  rate_factor_ = factor;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
