// SPDX-License-Identifier: Apache-2.0
// The bodies of session.hpp.
#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

#include "long_wait.hpp"
#include "session.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE void abort_all(const std::string& message) {
  int rank = 0;
  if (mpi_runs()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "rank %d: %s\n", rank, printable(message, Lines::keep).c_str());
  std::fflush(stdout);
  std::fflush(stderr);
  if (mpi_runs()) {
    // One after the other: the first ends the job. mpirun of Open MPI 4.1 may crash, or never end, where several abort at once.
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * std::min(rank, 10)));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::_Exit(1);
}

SKEIN_MPI_INLINE void terminate_all() {
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

SKEIN_MPI_INLINE void MpiSession::start(int& argc, char**& argv) {
  int initialized = 0, finalized = 0, provided = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized)
    throw CommError(
        "MpiComm{argc, argv}: MPI has ended with an earlier world, or by the program, and begins once in a process: make one "
        "world that lives as long as all that uses it");
  if (!initialized) {
    const LongWait wait("MPI_Init_thread", -1, 60);
    check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_FUNNELED)
      abort_all("this MPI lets no program have threads (MPI_THREAD_FUNNELED): take another MPI");
    owns_ = true;
  }
  std::set_terminate(&terminate_all);
}

SKEIN_MPI_INLINE void MpiSession::finish() {
  if (owns_ && mpi_runs()) {
    int rank = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const LongWait wait("MPI_Finalize", rank, 60);
    MPI_Finalize();
  }
  owns_ = false;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
