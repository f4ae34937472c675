// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/self/self_comm.hpp"

#include <catch2/catch.hpp>

#include "../../support/collectives.hpp"

namespace sk = skein;
static_assert(sk::AllReduces<sk::SelfComm> && sk::StartsAllReduce<sk::SelfComm> && sk::Sends<sk::SelfComm> &&
              sk::Splits<sk::SelfComm>);

TEST_CASE("a world of one does what larger worlds do") {
  sk::SelfComm world;
  CHECK_NOTHROW(collectives::everything(world, 5000));
}

TEST_CASE("a world of one does not wait for itself") {
  sk::SelfComm world;
  int x = 0;
  CHECK_THROWS_WITH(world.recv(std::span<int>(&x, 1), 0), "recv: a world of one waits for a message that it has not sent");
}
