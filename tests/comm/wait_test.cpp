// SPDX-License-Identifier: Apache-2.0
// Waiting: whether ranks spin, by the cores that they may run on.
#include "skein/comm/wait.hpp"

#include <catch2/catch.hpp>

#include <vector>

namespace comm = skein::comm;

TEST_CASE("ranks spin where the cores of all of them are as many as they are") {
  const auto cores = [](std::vector<int> numbers) {
    comm::Cores made;
    for (const int n : numbers) CPU_SET(static_cast<unsigned>(n), &made.set);
    return made;
  };
  CHECK(comm::spins_of(std::vector{cores({0}), cores({1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({3}), cores({3})}) == 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1}), cores({1})}) == 0);
  const comm::Cores own = comm::own_cores();
  CHECK(CPU_COUNT(&own.set) == skein::available_cores());
}
