// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/control/control_comm.hpp>
#include <skein/comm/counted.hpp>
#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

#include <catch2/catch.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "../support/rank_check.hpp"

namespace sk = skein;
using sk::comm::Counts;

static_assert(2 * Counts{1, 2, 3, 4} - Counts{1, 2, 3, 4} == Counts{1, 2, 3, 4});

static_assert(sk::comm::starts_by_waiting<sk::Counted<sk::ControlComm>::engine_type> &&
              !sk::comm::starts_by_waiting<sk::Counted<sk::ThreadComm>::engine_type>);

TEST_CASE("what goes through a communicator is counted", "[comm]") {
  CHECK_NOTHROW(sk::spawn(4,
                          [](sk::ThreadComm& world) {
                            sk::Counted counted{world};
                            RANK_CHECK(counted.counts() == Counts{});
                            std::vector<float> values(1000, 1.0f);
                            counted.all_reduce(values, sk::Sum{});
                            RANK_CHECK(values[999] == 4);
                            RANK_CHECK(counted.counts() == Counts{1, 4000, 0, 0});
                            const sk::comm::Traffic sent = sk::comm::ring_all_reduce(counted, values);
                            RANK_CHECK(values[999] == 16);
                            RANK_CHECK(counted.counts() == Counts{1, 4000, sent.messages, sent.bytes});
                            RANK_CHECK(sent.messages == 6 && sent.bytes == 6000);
                            auto request = counted.start_broadcast(values, 2);
                            request.wait();
                            counted.barrier();
                            RANK_CHECK(counted.counts() == Counts{3, 8000, 6, 6000});
                            const std::vector<std::size_t> counts{1, 2, 3, 4};
                            const std::vector<float> own(counts[static_cast<std::size_t>(world.rank())]);
                            counted.all_gather_v(own, counts, std::span(values).first(10));
                            RANK_CHECK(counted.counts() == Counts{4, 8000 + 4 * (world.rank() + 1), 6, 6000});
                          },
                          {.deadline = 60}));
}

TEST_CASE("a rank's bytes are those that it gives, whatever the form of the call", "[comm]") {
  CHECK_NOTHROW(sk::spawn(4,
                          [](sk::ThreadComm& world) {
                            sk::Counted counted{world};
                            auto payload = [&, before = 0L](auto&& call) mutable {
                              call();
                              return counted.counts().payload - std::exchange(before, counted.counts().payload);
                            };
                            std::vector<float> all(1000, 1.0f), part(250), other(1000);
                            const std::vector<std::size_t> quarters(4, 250);
                            RANK_CHECK(payload([&] { counted.reduce_scatter(all, part, sk::Sum{}); }) == 4000);
                            RANK_CHECK(payload([&] { counted.reduce_scatter_v(all, quarters, part, sk::Sum{}); }) == 4000);
                            RANK_CHECK(payload([&] { counted.all_to_all(all, other); }) == 4000);
                            RANK_CHECK(payload([&] { counted.all_gather(part, all); }) == 1000);
                          },
                          {.deadline = 60}));
}

TEST_CASE("a wait through a counter takes the simulated time of one without it", "[comm]") {
  const auto waits = [](bool counts) {
    double waited = 0;
    sk::simulate(2, {}, [&](sk::SimComm& world) {
      int value = 1;
      if (world.rank() == 1) {
        world.compute(1.0);
        world.send(sk::DeviceSpan<const int>(&value, 1), 0);
        return;
      }
      const auto receive = [&](auto& comm) {
        (void)comm.irecv(sk::DeviceSpan<int>(&value, 1), 1).wait_for(std::chrono::hours(1));
      };
      sk::Counted counted{world};
      if (counts) receive(counted);
      else receive(world);
      waited = world.now();
    });
    return waited;
  };
  CHECK(waits(true) == waits(false));
}
