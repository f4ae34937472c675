// SPDX-License-Identifier: Apache-2.0
// Catch2's main for test programs whose ranks are processes. Every rank runs the same cases; the program fails when a case
// fails on any rank, rank 0 prints the report and the others only what failed. A watchdog ends all ranks, naming the rank and the
// case that it was in, when SKEIN_TEST_DEADLINE seconds (default 120) have passed: a lost rank never stalls the suite.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "sanitizers.hpp"

#if SKEIN_TEST_ASAN
#include <sanitizer/lsan_interface.h>
/// Whole stacks of allocations: MPI and its plugins have no frame pointers, and lsan.supp goes by what is on the stack.
extern "C" const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }
/// Looks for leaks while MPI's plugins are still loaded: later nobody can say whose memory it is.
static void check_leaks() { __lsan_do_leak_check(); }
#else
static void check_leaks() {}
#endif

namespace {

std::mutex current_mutex;
std::string current_case = "start";

struct NameTheCase : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    const std::lock_guard lock(current_mutex);
    current_case = info.name;
  }
};

/// Ends the whole job when the deadline passes before it is destroyed.
class Watchdog {
 public:
  Watchdog(int rank, double seconds) : thread_([this, rank, seconds] { watch(rank, seconds); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  /// This rank's cases are done: a rank that is not has time to name itself, before this one ends all.
  void wait_for_others() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }

 private:
  void watch(int rank, double seconds) {
    std::unique_lock lock(mutex_);
    const auto is_done = [this] { return done_; };
    if (wake_.wait_for(lock, std::chrono::duration<double>(seconds), is_done)) return;
    if (has_ended_ && wake_.wait_for(lock, std::chrono::seconds(20), is_done)) return;
    const std::lock_guard name_lock(current_mutex);
    std::fprintf(stderr, "watchdog: rank %d is still in \"%s\" after %g seconds\n", rank, current_case.c_str(), seconds);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 99);
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false, has_ended_ = false;
  std::thread thread_;
};

double deadline() {
  const char* text = std::getenv("SKEIN_TEST_DEADLINE");
  const double seconds = text ? std::atof(text) : 0;
  return seconds > 0 ? seconds : 120;
}

}  // namespace

CATCH_REGISTER_LISTENER(NameTheCase)

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  const auto& config = session.configData();
  if (config.listTests || config.listTestNamesOnly || config.listTags || config.showHelp) return session.run();

  int provided = 0;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return 98;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  int failed = 0;
  {
    Watchdog watchdog(rank, deadline());
    std::ostringstream quiet;
    std::streambuf* const out = std::cout.rdbuf();
    if (rank != 0) std::cout.rdbuf(quiet.rdbuf());
    failed = session.run();
    watchdog.wait_for_others();
    std::cout.rdbuf(out);
    if (rank != 0 && failed != 0) std::cout << "---- rank " << rank << "\n" << quiet.str() << std::flush;
    int any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any != 0 && failed == 0) failed = 1;
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) {
    check_leaks();
    MPI_Finalize();
  }
  return failed;
}
