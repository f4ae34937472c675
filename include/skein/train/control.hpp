// SPDX-License-Identifier: Apache-2.0
// What a callback may ask of the training: to stop, and why. A request, not an act: ranks may ask for different things (their
// clocks differ), so the trainer lets all ranks agree before it stops.
#pragma once
#include <array>
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Handed to every hook of every callback.
class Control {
 public:
  /// Ends the training after this step or epoch. The first reason is kept (its first 127 characters).
  void stop(std::string_view reason);
  bool stopping() const { return stopping_; }
  std::string_view reason() const { return reason_.data(); }
  /// For the trainer, after the ranks agreed: one that did not ask itself stops because another did.
  void agree(bool stop_all, std::string_view reason = "another rank asked to stop");

 private:
  bool stopping_ = false;
  std::array<char, 128> reason_{};
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "control.ipp"
#endif
