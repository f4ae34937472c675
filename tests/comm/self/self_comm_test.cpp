// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/self/self_comm.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

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

TEST_CASE("a world of one refuses what larger worlds refuse") {
  sk::SelfComm world;
  CHECK_THROWS_WITH(world.split(-1), "split: a colour is 0 or more; it is -1");
  int x = 0, y = 0;
  const std::vector<int> two(2);
  world.send(two, 0, 3);
  CHECK_THROWS_WITH(world.recv(std::span<int>(&x, 1), 0, 3), "recv: the message has 8 bytes, the receiver's span 4");
  auto outer = world.irecv(std::span<int>(&x, 1), 0, 1);
  try {
    const auto inner = world.irecv(std::span<int>(&y, 1), 0, 2);
    throw std::runtime_error("passes through");
  } catch (const std::runtime_error&) {}
  CHECK_THROWS_WITH(outer.poll(), Catch::Contains("an exception passed through a message of this world of one"));
}

TEST_CASE("receives of a world of one get the messages of a tag in the order in which they were started") {
  sk::SelfComm world;
  const int sent[] = {1, 2, 3};
  int got[] = {0, 0, 0};
  for (const int& x : sent) world.send(std::span<const int>(&x, 1), 0, &x == sent + 2 ? 7 : 5);
  auto first = world.irecv(std::span<int>(got, 1), 0, 5);
  auto second = world.irecv(std::span<int>(got + 1, 1), 0, 5);
  auto other = world.irecv(std::span<int>(got + 2, 1), 0, 7);
  other.wait();
  second.wait();
  first.wait();
  CHECK(std::vector<int>(got, got + 3) == std::vector<int>{1, 2, 3});
}

TEST_CASE("a receive of a world of one that was given up takes no message of a later one") {
  sk::SelfComm world;
  int given_up = 0, got = 0;
  { const auto dropped = world.irecv(std::span<int>(&given_up, 1), 0); }
  const int sent = 4;
  world.send(std::span<const int>(&sent, 1), 0);
  world.recv(std::span<int>(&got, 1), 0);
  CHECK(given_up == 0);
  CHECK(got == 4);
}
