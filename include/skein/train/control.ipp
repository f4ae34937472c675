// SPDX-License-Identifier: Apache-2.0
// The bodies of control.hpp.
#pragma once
#include "control.hpp"

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void Control::stop(std::string_view reason) {
  if (stopping_) return;
  stopping_ = true;
  reason_[reason.copy(reason_.data(), reason_.size() - 1)] = '\0';
}

SKEIN_INLINE void Control::agree(bool stop_all, std::string_view reason) {
  if (stop_all) stop(reason);
  else *this = {};
}

}  // namespace skein::inline SKEIN_ABI::train
