// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/counted.hpp>
#include <skein/comm/thread/spawn.hpp>

#include <catch2/catch.hpp>

#include "../support/rank_check.hpp"

namespace sk = skein;
using sk::comm::Counts;

static_assert(2 * Counts{1, 2, 3, 4} - Counts{1, 2, 3, 4} == Counts{1, 2, 3, 4});

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
