// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, and the signal by which a batch system ends a job, while a fit runs: the first is kept for the loop of the fit, which
// ends on all ranks after a step; a second one ends the program by its default action. Handlers are those of the process: several
// ranks that are threads share them, and the last fit that ends gives back what was there.
#pragma once
#include "options.hpp"

namespace skein::inline SKEIN_ABI::train {

/// While one lives, the signals that the options name are kept. A signal for which the program has a handler, or which it
/// ignores, is left to the program.
class SignalWatch {
 public:
  /// `rank`: of the policy; rank 0's process says that it has heard.
  SignalWatch(const FitInterrupt& options, int rank);
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  /// A signal that came after the fit's last look is sent again, to who is there then.
  ~SignalWatch();

  /// The signal that has come; 0: none.
  static int received();
  /// It ends the fit: it is not sent again.
  static void taken();

 private:
  bool watches_;
};

/// "SIGINT".
const char* name_of_signal(int signal);

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "signal_watch.ipp"
#endif
