// SPDX-License-Identifier: Apache-2.0
// Waiting: whether ranks spin, by the cores that they may run on.
#include "skein/comm/wait.hpp"

#include <catch2/catch.hpp>

#include <vector>

namespace comm = skein::comm;

TEST_CASE("ranks spin where the cores of all of them are as many as they are") {
  const auto cores = [](std::vector<int> numbers) {
    skein::Cores made;
    for (const int n : numbers) made.add(n);
    return made;
  };
  CHECK(comm::spins_of(std::vector{cores({0}), cores({1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({3}), cores({3})}) == 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1}), cores({1})}) == 0);
  CHECK(comm::spins_of(std::vector{cores({1500}), cores({8000})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({8000}), cores({8000})}) == 0);
  CHECK(skein::own_cores().count() == skein::available_cores());
}
