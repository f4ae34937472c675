// SPDX-License-Identifier: Apache-2.0
// Groups of several levels nest, or the first fault is said: by value, without ranks.
#include "skein/parallel/check_compose.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace skein::parallel::detail;

namespace {
/// Groups of so many ranks that follow each other; the first begins at `from`, and those before it are alone.
std::vector<GroupMembership> groups(int ranks, int size, int from = 0) {
  std::vector<GroupMembership> level;
  for (int r = 0; r < ranks; ++r)
    if (r < from) level.push_back({r, 1});
    else level.push_back({from + (r - from) / size * size, std::min(size, ranks - from - (r - from) / size * size)});
  return level;
}
}  // namespace

TEST_CASE("groups that nest have no fault, in whatever order the levels are given", "[parallel]") {
  CHECK(nesting_fault({}).empty());
  CHECK(nesting_fault({groups(8, 2)}).empty());
  CHECK(nesting_fault({groups(8, 2), groups(8, 4)}).empty());
  CHECK(nesting_fault({groups(8, 4), groups(8, 2), groups(8, 4)}).empty());
  CHECK(nesting_fault({groups(7, 2), groups(7, 4)}).empty());  // the last ones are smaller
}

TEST_CASE("a group that lies in two wider ones is a fault, and one that is not all in the world", "[parallel]") {
  const std::string shared = "ranks 3 and 4 share a group of 2, but not the wider group of 4";
  CHECK(nesting_fault({groups(8, 2, 1), groups(8, 4)}) == shared);
  CHECK(nesting_fault({groups(8, 4), groups(8, 2, 1)}) == shared);
  std::vector<GroupMembership> torn = groups(4, 2);
  torn[3].size = 3;
  CHECK(nesting_fault({torn}) == "the group of 3 that rank 3 is in has 2 of the widest communicator's 4 ranks");
}
