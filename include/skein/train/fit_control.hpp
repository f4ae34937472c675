// SPDX-License-Identifier: Apache-2.0
// What a callback may ask of the training: to stop, and why; to keep the weights as they are; another rate. Requests, not acts:
// ranks may ask for different things (their clocks differ), so the trainer lets all ranks agree before it does them.
#pragma once
#include <array>
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// In place of the name of a callback that has asked to keep the weights, where that is not known: no callback has this one.
inline constexpr const char* unknown_keeper = "?";

/// Handed to every hook of every callback.
class FitControl {
 public:
  /// Ends the training after this step or epoch. The first reason is kept (its first 127 characters).
  void stop(std::string_view reason);
  /// Ends it for good: a program with `.checkpoint` that is started again does not go on, as it does after stop().
  void finish(std::string_view reason) { stop(reason), finishing_ = true; }
  bool stopping() const { return stopping_; }
  bool finishing() const { return finishing_; }
  std::string_view reason() const { return reason_.data(); }
  /// The trainer keeps a copy of the weights as they are after this step or epoch, in place of the copy before. The model gets
  /// the last copy back when fit ends.
  void keep_weights() { keeps_weights_ = true; }
  bool keeps_weights() const { return keeps_weights_; }

  /// A factor of the scheduled rate, from the next step on until it is set again; 1 at first, and saved with the training. Where
  /// ranks ask for different ones, all take rank 0's.
  void set_rate_factor(double factor);
  double rate_factor() const { return rate_factor_; }

  /// For the trainer, after the ranks agreed: one that did not ask itself stops because another did.
  void agree_to_stop(bool all, std::string_view reason = "another rank asked to stop");
  void agree_to_keep(bool all, double rate_factor) { keeps_weights_ = all, rate_factor_ = rate_factor; }
  void agree_to_finish(bool all) { finishing_ = all; }

 private:
  bool stopping_ = false, finishing_ = false, keeps_weights_ = false;
  double rate_factor_ = 1;
  std::array<char, 128> reason_{};
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "fit_control.ipp"
#endif
