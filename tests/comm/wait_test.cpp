// SPDX-License-Identifier: Apache-2.0
// Waiting: whether ranks spin, by the cores that they may run on.
#include "skein/comm/wait.hpp"

#include <catch2/catch.hpp>

#include <vector>

namespace comm = skein::comm;

TEST_CASE("ranks spin where the cores of all of them are as many as they are") {
  const auto cores = [](std::vector<int> numbers) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int n : numbers) CPU_SET(static_cast<unsigned>(n), &set);
    return set;
  };
  CHECK(comm::spins_of(std::vector{cores({0}), cores({1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({3}), cores({3})}) == 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1}), cores({1})}) == 0);
  const cpu_set_t own = comm::own_cores();
  CHECK(CPU_COUNT(&own) == skein::available_cores());
}
