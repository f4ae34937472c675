// SPDX-License-Identifier: Apache-2.0
#include <skein/core/error.hpp>
#include <skein/core/workers.hpp>

#include "../support/processes.hpp"
#include "../support/sanitizers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("slices of any number of workers cover a range once, in multiples of the grain") {
  for (int count : {1, 2, 3, 4, 7})
    for (long n : {0L, 1L, 5L, 64L, 1000L})
      for (long grain : {1L, 4L, 16L}) {
        long at = 0;
        for (int i = 0; i < count; ++i) {
          const auto [lo, hi] = sk::Worker{i, count}.slice(n, grain);
          CHECK(lo == at);
          CHECK(hi >= lo);
          if (hi != n) CHECK((hi - lo) % grain == 0);
          at = hi;
        }
        CHECK(at == n);
      }
}

TEST_CASE("every worker runs once a region, and sees its own index") {
  for (int n : {1, 2, 3, 7}) {
    sk::Workers workers(n);
    CHECK(workers.size() == n);
    std::vector<int> calls(static_cast<std::size_t>(n));
    std::atomic<int> wrong{0};  // Catch's reports are not for several threads
    for (int region = 0; region < 50; ++region)
      workers.run([&](sk::Worker& w) {
        wrong += w.count != n;
        ++calls[static_cast<std::size_t>(w.index)];
      });
    CHECK(wrong == 0);
    for (int c : calls) CHECK(c == 50);
  }
}

TEST_CASE("a barrier separates what is before from what is after, for more threads than cores too") {
  for (int n : {2, 5}) {
    sk::Workers workers(n);
    std::vector<int> value(static_cast<std::size_t>(n));
    std::atomic<int> wrong{0};
    workers.run([&](sk::Worker& w) {
      for (int round = 1; round <= 200; ++round) {
        value[static_cast<std::size_t>(w.index)] = round;
        w.barrier();
        wrong += std::accumulate(value.begin(), value.end(), 0) != n * round;
        w.barrier();
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("an exception of a worker reaches the caller, and the set lives on") {
  sk::Workers workers(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    try {
      workers.run([&](sk::Worker& w) {
        if (w.index == thrower) throw sk::ArgumentError("worker " + std::to_string(w.index));
      });
      FAIL("nothing was thrown");
    } catch (const sk::ArgumentError& e) { CHECK(std::string(e.what()) == "worker " + std::to_string(thrower)); }
  }
  std::atomic<int> total{0};
  workers.run([&](sk::Worker& w) { total += w.index; });
  CHECK(total == 3);
}

TEST_CASE("a worker that throws between barriers ends the region on all, and the next one works") {
  for (int count : {1, 2, 4, 7}) {
    sk::Workers workers(count);
    for (int round = 0; round < 60; ++round) {
      const int thrower = round % count, before = round % 3;  // barriers that all pass before it
      std::atomic<int> past{0}, left{0};
      std::string what;
      try {
        workers.run([&](sk::Worker& w) {
          struct Left {
            std::atomic<int>& n;
            ~Left() { ++n; }
          } const leaves{left};  // a worker that is unwound destroys what it has
          for (int i = 0; i < before; ++i) w.barrier();
          if (w.index == thrower) {
            if (round % 4 < 2) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the others wait; or are on the way
            throw std::runtime_error("round " + std::to_string(round));
          }
          if (round % 4 == 3) std::this_thread::sleep_for(std::chrono::microseconds(200));
          for (int i = 0; i < 3; ++i) w.barrier();
          ++past;
        });
      } catch (const std::runtime_error& e) { what = e.what(); }
      CHECK(what == "round " + std::to_string(round));
      CHECK(past == 0);
      CHECK(left == count);
      std::atomic<int> sum{0}, wrong{0};
      workers.run([&](sk::Worker& w) {
        for (int i = 1; i <= 4; ++i) {
          sum += 1;
          w.barrier();
          wrong += sum != i * count;
          w.barrier();
        }
      });
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a barrier to which all have come is passed by all, though one throws right behind it", "[core]") {
  for (int count : {2, 4}) {
    sk::Workers workers(count);
    for (int round = 0; round < 300; ++round) {
      std::atomic<int> past{0};
      CHECK_THROWS_AS(workers.run([&](sk::Worker& w) {
        w.barrier();
        ++past;
        if (w.index == round % count) throw std::runtime_error("behind the barrier");
        w.barrier();
      }),
                      std::runtime_error);
      CHECK(past == count);
    }
  }
}

TEST_CASE("of several exceptions the first in time is thrown again, and those that follow from it are not") {
  sk::Workers workers(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> thrown{false};
    std::string what;
    try {
      workers.run([&](sk::Worker& w) {
        if (w.index == 2) {
          thrown = true;
          throw std::runtime_error("the cause");
        }
        try {
          w.barrier();
        } catch (...) {  // whoever catches everything, and throws another
          throw std::runtime_error("a consequence");
        }
      });
    } catch (const std::runtime_error& e) { what = e.what(); }
    CHECK(thrown);
    CHECK(what == "the cause");
  }
}

TEST_CASE("any type may be thrown, and a set may be destroyed after it") {
  for (int count : {1, 2, 4}) {
    sk::Workers workers(count);
    CHECK_THROWS_AS(workers.run([](sk::Worker& w) {
      if (w.index + 1 == w.count) throw 42;
      w.barrier();
    }),
                    int);
  }
}

#if !SKEIN_TEST_ASAN && !SKEIN_TEST_TSAN  // which need terabytes of address space
TEST_CASE("a thread that the system does not start is an error that says so, not the end of the program") {
  const support::Child child = support::start_process([]() -> std::string {
    rlimit memory{};  // stacks of threads need address space
    ::getrlimit(RLIMIT_AS, &memory);
    memory.rlim_cur = std::min<rlim_t>(memory.rlim_max, rlim_t{2} << 30);
    if (::setrlimit(RLIMIT_AS, &memory) != 0) return "no limit";
    try {
      sk::Workers workers(5000);
      return "they all started";
    } catch (const sk::Error& e) { return e.what(); }
  });
  const std::string what = support::wait_for(child);
  CHECK_THAT(what, Catch::Contains("of 5000 threads the system does not start number ") && Catch::Contains("SKEIN_THREADS"));
}
#endif

TEST_CASE("the number of threads comes from the affinity mask, or from SKEIN_THREADS") {
  CHECK(sk::available_cores() >= 1);
  ::setenv("SKEIN_THREADS", "3", 1);
  CHECK(sk::Workers::default_count() == 3);
  ::setenv("SKEIN_THREADS", "0", 1);
  CHECK(sk::Workers::default_count() == sk::available_cores());
  ::unsetenv("SKEIN_THREADS");
  CHECK(sk::Workers::default_count() == sk::available_cores());
}

TEST_CASE("ranks that share their cores divide them, unless SKEIN_THREADS says how many threads each has") {
  const int cores = sk::available_cores();
  for (const char* nothing : {"", "0"}) {  // an empty variable is what $SLURM_CPUS_PER_TASK gives without --cpus-per-task
    ::setenv("SKEIN_THREADS", nothing, 1);
    CHECK(sk::Workers::default_count(2, true) == std::max(1, cores / 2));
    ::unsetenv("SKEIN_THREADS");
  }
  CHECK(sk::Workers::default_count(1, true) == cores);
  CHECK(sk::Workers::default_count(0, false) == cores);
  CHECK(sk::Workers::default_count(2, true) == std::max(1, cores / 2));
  CHECK(sk::Workers::default_count(cores + 1, true) == 1);
  ::setenv("SKEIN_THREADS", "3", 1);
  CHECK(sk::Workers::default_count(cores + 1, true) == 3);
  ::unsetenv("SKEIN_THREADS");
}
