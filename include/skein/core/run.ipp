// SPDX-License-Identifier: Apache-2.0
// The bodies of run.hpp.
#pragma once
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "run.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::detail {

/// Does a launcher's environment call this process another rank than 0? Then a wrong flag is said by that one alone.
SKEIN_INLINE bool another_rank_speaks() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"})
    if (const char* rank = std::getenv(name)) return std::string_view(rank) != "0";
  return false;
}

SKEIN_INLINE int run_guarded(int argc, const char* const* argv, int (*call)(void*), void* object) {
  std::string_view program = argc > 0 ? argv[0] : "";
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  const auto say = [&](const char* message) {
    std::fflush(stdout);
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(program.size()), program.data(), printable(message, Lines::keep).c_str());
  };
  struct Scope : RunInProgress {
    Scope() { run_in_progress() = this; }
    ~Scope() { run_in_progress() = outer; }
    RunInProgress* const outer = run_in_progress();
  } run;
  const auto fail = [&](const char* message) {
    if (run.end) run.end(message);
    say(message);
  };
  try {
    const int code = call(object);
    if (run.end) run.end("an exception left the scope of the world's communicator, and the program caught it");
    return code;
  } catch (const FlagError& e) {
    if (run.end) run.end(e.what());
    if (!another_rank_speaks()) say(e.what());
    return 2;
  } catch (const Interrupted& e) {
    ::signal(SIGPIPE, SIG_IGN);  // who reads what is said may have ended by the same Ctrl-C; the exit code is this program's
    if (!another_rank_speaks()) say(e.what());
    return 128 + e.signal();
  } catch (const std::exception& e) { fail(e.what()); } catch (...) {
    fail("an exception that is no std::exception");
  }
  return 1;
}

}  // namespace skein::inline SKEIN_ABI::detail

SKEIN_END_COLD
