// SPDX-License-Identifier: Apache-2.0
// Starts MPI if nobody has, finalises what it started, and sees that an exception which nobody catches ends all ranks with its
// message instead of leaving them to wait.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Prints "rank r: message" and ends the whole job.
[[noreturn]] inline void abort_all(const std::string& message) {
  int rank = 0;
  if (mpi_runs()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "rank %d: %s\n", rank, message.c_str());
  std::fflush(stdout);
  std::fflush(stderr);
  if (mpi_runs()) MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

/// The handler of std::terminate: the message of the exception that nobody caught goes to all.
[[noreturn]] inline void terminate_all() {
  std::string message = "std::terminate was called";
  if (const std::exception_ptr e = std::current_exception()) {
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& error) { message = error.what(); } catch (...) {
      message = "an exception that is no std::exception";
    }
  }
  abort_all(message);
}

/// MPI from the first MpiComm{argc, argv} on.
class MpiSession {
 public:
  MpiSession() = default;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Asks for MPI_THREAD_FUNNELED where MPI does not run yet.
  void start(int& argc, char**& argv) {
    int initialized = 0, provided = 0;
    MPI_Initialized(&initialized);
    if (!initialized) {
      check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
      if (provided < MPI_THREAD_FUNNELED)
        abort_all("this MPI lets no program have threads (MPI_THREAD_FUNNELED): take another MPI");
      owns_ = true;
    }
    std::set_terminate(&terminate_all);
  }
  bool owns() const { return owns_; }
  void finish() {
    if (owns_ && mpi_runs()) MPI_Finalize();
    owns_ = false;
  }

 private:
  bool owns_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm
