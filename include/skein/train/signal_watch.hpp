// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, and the signal by which a batch system ends a job, while a fit runs: the first is kept for the loop of the fit, which
// ends on all ranks after a step; a second one ends the program by its default action. Handlers are those of the process: several
// ranks that are threads share them, fits of several trainers too, each of which ends by the signals of its own options.
#pragma once
#include <cstdint>

#include "options.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Throws ArgumentError for a `.also` that no program can keep.
void check_interrupt(const FitInterrupt& options);

/// While one lives, the signals that the options name are kept. A signal for which the program has a handler, or which it
/// ignores, is left to the program. From the first signal on SIGPIPE is ignored, unless the program has its own way with it: who
/// reads the output has got the Ctrl-C too. The last watch gives back what was there.
class SignalWatch {
 public:
  enum class Ends { step, soon, epoch };
  /// `rank`: of the policy; rank 0's process says that it has heard. `when`: what ends before the fit does.
  SignalWatch(const FitInterrupt& options, int rank, Ends when);
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  /// A signal that ended no fit is sent again, to who is there then; but not where an exception ends the fit.
  ~SignalWatch();

  /// The first of its signals since it began, or that no other fit had ended by until then; 0: none.
  int received() const;
  /// They end the fit: they are not sent again.
  void taken() { taken_ = true, note_taken(); }

 private:
  void note_taken();
  std::uint64_t own_ = 0;     // signals: a bit each
  std::uint32_t before_ = 0;  // the round of signals that was over when it began
  int exceptions_;            // on their way when it began
  bool says_ = false, taken_ = false;
  Ends when_;
};

/// "SIGINT".
const char* name_of_signal(int signal);
/// Throws Interrupted on a rank that served those whose fit the signal has ended.
[[noreturn]] void leave_served(int signal);

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "signal_watch.ipp"
#endif
