// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/rank_names.hpp"

#include <catch2/catch.hpp>

namespace comm = skein::comm;

TEST_CASE("ranks of a part are named by their numbers in the whole, those of its parts too") {
  const comm::RankNames world(5), part = world.part({4, 1, 3}), inner = part.part({2, 0});
  CHECK(world.size() == 5);
  CHECK(world.name(3) == "rank 3");
  CHECK(part.size() == 3);
  CHECK(part.name(0) == "rank 4");
  CHECK(part.name(-1) == "any rank");
  CHECK(inner.number(0) == 3);
  CHECK(inner.number(1) == 4);
  CHECK(inner.number(7) == 7);  // there is none
  CHECK(comm::RankNames().number(2) == 2);
}

TEST_CASE("one rank, several and none are named") {
  const comm::RankNames part = comm::RankNames(5).part({4, 1, 3});
  CHECK(comm::ranks_text(part, [](int r) { return r != 1; }) == "ranks 4, 3");
  CHECK(comm::some_ranks_text(part, [](int r) { return r == 1; }) == "rank 1");
  CHECK(comm::some_ranks_text(part, [](int) { return false; }).empty());
  CHECK(comm::ranks_text(3, [](int r) { return r != 1; }) == "ranks 0, 2");
}

TEST_CASE("an engine that says no names has ranks with numbers of their own") {
  struct Own {
  } own;
  struct Named {
    comm::RankNames rank_names() const { return comm::RankNames({3, 1}); }
  } named;
  CHECK(comm::rank_names(own).number(1) == 1);
  CHECK(comm::rank_names(named).number(0) == 3);
}
