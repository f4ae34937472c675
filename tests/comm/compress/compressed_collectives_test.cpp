// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/compress/compressed_collectives.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

#include <catch2/catch.hpp>

#include "../../support/compress_cases.hpp"

namespace sk = skein;

TEST_CASE("compressed sums over threads, with the bytes of the plan") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { compress_cases::everything(world); }, {.deadline = 60}));
}

TEST_CASE("compressed sums in a world of one") {
  sk::SelfComm world;
  CHECK_NOTHROW(compress_cases::everything(world));
}
