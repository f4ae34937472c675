// SPDX-License-Identifier: Apache-2.0
// The bodies of callback.hpp.
#pragma once
#include "callback.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE AnyCallback& AnyCallback::operator=(AnyCallback other) noexcept {
  held_.swap(other.held_);
  return *this;
}

SKEIN_INLINE Callbacks::Callbacks(std::initializer_list<AnyCallback> all) : all_(all) {}
SKEIN_INLINE Callbacks::Callbacks(const Callbacks&) = default;
SKEIN_INLINE Callbacks::Callbacks(Callbacks&&) noexcept = default;
SKEIN_INLINE Callbacks& Callbacks::operator=(const Callbacks&) = default;
SKEIN_INLINE Callbacks& Callbacks::operator=(Callbacks&&) noexcept = default;
SKEIN_INLINE Callbacks::~Callbacks() = default;

SKEIN_INLINE void Callbacks::add(AnyCallback callback) { all_.push_back(std::move(callback)); }

SKEIN_INLINE bool Callbacks::wants_steps() const {
  for (const AnyCallback& callback : all_)
    if (callback.wants_steps()) return true;
  return false;
}

SKEIN_INLINE void Callbacks::on_fit_begin(FitControl& control) {
  for (auto& each : all_) each.on_fit_begin(control);
}

SKEIN_INLINE void Callbacks::on_fit_end(const History& history) {
  for (auto& each : all_) each.on_fit_end(history);
}

SKEIN_INLINE void Callbacks::on_epoch_begin(int epoch, FitControl& control) {
  for (auto& each : all_) each.on_epoch_begin(epoch, control);
}

SKEIN_INLINE void Callbacks::on_epoch_end(EpochRecord& record, FitControl& control) {
  for (auto& each : all_) each.on_epoch_end(record, control);
}

SKEIN_INLINE void Callbacks::on_step_end(const StepRecord& record, FitControl& control) {
  for (auto& each : all_) each.on_step_end(record, control);
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
