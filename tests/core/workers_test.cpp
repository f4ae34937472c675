// SPDX-License-Identifier: Apache-2.0
#include <skein/core/error.hpp>
#include <skein/core/workers.hpp>

#include <atomic>
#include <numeric>
#include <string>
#include <vector>

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
    for (int region = 0; region < 50; ++region)
      workers.run([&](sk::Worker& w) {
        CHECK(w.count == n);
        ++calls[static_cast<std::size_t>(w.index)];
      });
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

TEST_CASE("an exception of a worker reaches the caller, the lowest index first, and the set lives on") {
  sk::Workers workers(3);
  for (int i = 0; i < 3; ++i) {
    try {
      workers.run([](sk::Worker& w) {
        if (w.index > 0) throw sk::ArgumentError("worker " + std::to_string(w.index));
      });
      FAIL("nothing was thrown");
    } catch (const sk::ArgumentError& e) {
      CHECK(std::string(e.what()) == "worker 1");
    }
  }
  int sum = 0;
  std::atomic<int> total{0};
  workers.run([&](sk::Worker& w) { total += w.index; });
  sum = total;
  CHECK(sum == 3);
}

TEST_CASE("the number of threads comes from the affinity mask, or from SKEIN_THREADS") {
  CHECK(sk::available_cores() >= 1);
  ::setenv("SKEIN_THREADS", "3", 1);
  CHECK(sk::Workers::default_count() == 3);
  ::setenv("SKEIN_THREADS", "nonsense", 1);
  CHECK(sk::Workers::default_count() == sk::available_cores());
  ::unsetenv("SKEIN_THREADS");
  CHECK(sk::Workers::default_count() == sk::available_cores());
}
