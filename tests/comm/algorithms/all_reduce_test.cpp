// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

#include <catch2/catch.hpp>

#include "../../support/all_reduce_cases.hpp"

namespace sk = skein;
namespace cases = all_reduce_cases;

TEST_CASE("all-reduces by tables equal the communicator's, and send what the tables say, over threads") {
  const int ranks = GENERATE(1, 2, 3, 4, 6, 7, 8);
  CHECK_NOTHROW(sk::spawn(ranks,
                          [](sk::ThreadComm& world) {
                            cases::everything(world, 4097);
                            cases::overlaps(world);
                            cases::chooses(world);
                          },
                          {.deadline = 60}));
}

TEST_CASE("all-reduces by tables in a world of one") {
  sk::SelfComm world;
  CHECK_NOTHROW(cases::everything(world, 1000));
}

TEST_CASE("two halves of one word: 16-bit values travel as they are") {
  sk::spawn(4, [](sk::ThreadComm& world) {
    std::vector<sk::bf16> v(64, sk::bf16(static_cast<float>(world.rank() + 1)));
    const sk::comm::Traffic t = sk::comm::ring_all_reduce(world, v);
    collectives::require(static_cast<float>(v[63]) == 10.0f, "sum of bf16");
    collectives::require(t == sk::comm::Traffic{6, 6 * 16 * 2}, "bytes of bf16");
  });
}

TEST_CASE("a message of the user's is not taken for one of a table's") {
  CHECK_NOTHROW(sk::spawn(2,
                          [](sk::ThreadComm& world) {
                            std::vector<float> sum(4, 1.0f), said(4, 7.0f), heard(4);
                            auto message = world.irecv(heard, 1 - world.rank());
                            sk::comm::recursive_doubling_all_reduce(world, sum);
                            world.send(said, 1 - world.rank());
                            message.wait();
                            collectives::require(sum == std::vector<float>(4, 2.0f) && heard == said, "sum and message");
                          },
                          {.deadline = 20}));
}

TEST_CASE("tables that do not fit are refused") {
  sk::spawn(4, [](sk::ThreadComm& world) {
    std::vector<float> v(8), staging;
    const auto text = [](auto&& f) {
      try {
        f();
      } catch (const sk::ArgumentError& e) { return std::string(e.what()); }
      return std::string();
    };
    collectives::require(text([&] { sk::comm::torus_all_reduce(world, v, 3); }) ==
                             "torus_all_reduce: the columns must divide the ranks; there are 3 columns and 4 ranks",
                         "columns");
    collectives::require(text([&] { sk::comm::hierarchical_all_reduce(world, v, 0); }) ==
                             "hierarchical_all_reduce: a node has a rank at least; it has 0",
                         "node");
    collectives::require(text([&] {
                           sk::comm::run_table(world, std::span<float>(v), sk::plan::RingAllReduce{4, 9}, sk::Sum{}, staging);
                         }) == "ring: the table is of 4 ranks and 9 values; there are 4 ranks, and the span holds 8",
                         "table");
  });
}
