// SPDX-License-Identifier: Apache-2.0
// The bodies of run.hpp.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "run.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::detail {

inline void say_exception(std::string_view program, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(program.size()), program.data(), printable(message, Lines::keep).c_str());
}

/// Rank 0's flag is most often as wrong, and its launcher ends the other ranks when rank 0 has said so and gone (mpirun: in a
/// second). Who is still there later has flags of its own.
inline void say_wrong_flag(std::string_view program, const std::string& message) {
  if (!another_rank_speaks()) return say_exception(program, message);
  ::sleep(3);
  say_exception(program, "rank " + std::string(launched_rank()) + ": " + message);
}

/// Prints the message of all ranks once. Who reads it may have ended by the same Ctrl-C: the exit code is this program's.
inline void say_interrupted(const RunInProgress& run) {
  ::signal(SIGPIPE, SIG_IGN);
  if (!another_rank_speaks()) say_exception(run.program, run.interrupted);
}

SKEIN_INLINE int run_guarded(int argc, const char* const* argv, int (*call)(void*), void* object) {
  std::string_view program = argc > 0 ? argv[0] : "";
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  struct Scope : RunInProgress {
    explicit Scope(std::string_view name) {
      program = name;
      say = &say_interrupted;
      run_in_progress() = this;
    }
    ~Scope() { run_in_progress() = outer; }
    RunInProgress* const outer = run_in_progress();
  } run{program};
  const auto fail = [&](const char* message) {
    if (run.end) run.end(message);
    say_exception(program, message);
  };
  try {
    const int code = call(object);
    if (run.end) run.end("an exception left the scope of the world's communicator, and the program caught it");
    return code;
  } catch (const FlagError& e) {
    if (run.end) run.end(e.what());
    say_wrong_flag(program, e.what());
    return 2;
  } catch (const Interrupted& e) {
    if (!run.said || run.interrupted != e.what()) {
      run.interrupted = e.what();
      say_interrupted(run);
    }
    return 128 + e.signal();
  } catch (const std::exception& e) { fail(e.what()); } catch (...) {
    fail("an exception that is no std::exception");
  }
  return 1;
}

}  // namespace skein::inline SKEIN_ABI::detail

SKEIN_END_COLD
