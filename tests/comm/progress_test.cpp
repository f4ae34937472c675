// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/progress.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <thread>

#include "../support/progress_cases.hpp"
#include "../support/rank_check.hpp"
#include "skein/comm/hierarchical/hierarchical.hpp"
#include "skein/comm/thread/spawn.hpp"

namespace sk = skein;
namespace cases = progress_cases;

TEST_CASE("threads: what is started on one communicator goes on while its rank waits in another") {
  const int ranks = GENERATE(1, 2, 3, 4);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { cases::everything(world); }, {.deadline = 20}));
}

TEST_CASE("two levels go on while their rank waits in a plain communicator, and the other way round") {
  CHECK_NOTHROW(sk::spawn(4,
                          [](sk::ThreadComm& world) {
                            sk::Hierarchical levels{world, 2};
                            cases::collective(levels, world, 1000);
                            cases::collective(world, levels, 1000);
                            cases::polled(levels, world);
                            cases::polled(world, levels);
                          },
                          {.deadline = 20}));
}

TEST_CASE("a communicator that another thread uses from now on is left alone by the first, and moved by that one") {
  const auto program = [](sk::ThreadComm& world) {
    sk::ThreadComm other = world.split(0), third = world.split(0);
    std::vector<double> sum(1000, 1.0);
    auto started = other.start_all_reduce(sum, sk::Sum{});
    // From their first call there on `other` and `third` are the second thread's, while this one waits in `world` for all.
    std::thread second([&] {
      if (world.rank() != 0 || started.poll()) started.wait();
      third.barrier();
      started.wait();
    });
    world.barrier();
    second.join();
    RANK_CHECK(sum == std::vector<double>(1000, world.size()));
  };
  for (int i = 0; i < 50; ++i) CHECK_NOTHROW(sk::spawn(2, program, {.deadline = 20}));
}

TEST_CASE("what goes wrong in a communicator that is moved ends the ranks, with the message of that communicator") {
  const auto program = [](sk::ThreadComm& world) {
    std::vector<float> a(3, 1.0f), b(4, 1.0f);
    sk::ThreadComm other = world.split(0), third = world.split(0);
    auto started = other.start_all_reduce(world.rank() == 0 ? a : b, sk::Sum{});
    if (world.rank() == 0) world.barrier();  // rank 1 is in `third`: each sees the difference while it waits elsewhere
    third.barrier();
    started.wait();
  };
  CHECK_THROWS_WITH(sk::spawn(2, program, {.deadline = 20}),
                    Catch::Matchers::Contains("differs between ranks: rank 0: all_reduce"));
}

TEST_CASE("the exception of a function that reduces is that of its rank, also while that waits in another communicator") {
  const bool asks = GENERATE(false, true);  // for the sum, or ends in the wait
  std::string told;
  const auto program = [&](sk::ThreadComm& world) {
    sk::ThreadComm other = world.split(0);
    std::vector<int> data(64, 1);
    data.back() = 60;  // of rank 1's slice
    if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    auto sum = other.start_all_reduce(data, cases::Checked{});
    if (world.rank() == 1) {
      try {
        if (asks) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          auto met = world.start_all_reduce(data);
          while (!met.poll() && std::chrono::steady_clock::now() < end) {}
        }
        world.barrier();
      } catch (const std::exception& e) {
        told = e.what();
        throw;
      }
    }
    sum.wait();
  };
  CHECK_THROWS_WITH(sk::spawn(2, program, {.deadline = 20}), Catch::Matchers::Contains(cases::Checked::too_large));
  CHECK(told == cases::Checked::too_large);
}
