// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/virtual_shards.hpp>

#include <string>

#include <catch2/catch.hpp>

namespace plan = skein::plan;

static_assert(plan::virtual_shards(8, 3, 0) == plan::VirtualShards{8, 0, 2} &&
              plan::virtual_shards(8, 3, 2) == plan::VirtualShards{8, 5, 8});
static_assert(plan::TreeNode{0, 8}.middle() == 4 && plan::TreeNode{0, 5}.middle() == 4 && plan::TreeNode{2, 4}.middle() == 3);
static_assert(!plan::VirtualShards{} && plan::shard_begin(10, 4, 3) == 7);

namespace {
/// The tree over the leaves, written as brackets; a rank's part is written once all of it is there.
std::string brackets(const plan::TreeNode& n) {
  if (n.leaf()) return std::to_string(n.begin);
  return "(" + brackets({n.begin, n.middle()}) + brackets({n.middle(), n.end}) + ")";
}
}  // namespace

TEST_CASE("the tree is fixed by the number of shards", "[plan]") {
  CHECK(brackets({0, 8}) == "(((01)(23))((45)(67)))");
  CHECK(brackets({0, 5}) == "(((01)(23))4)");
  CHECK(brackets({0, 1}) == "0");
}

TEST_CASE("a rank's subtrees are the largest within its shards", "[plan]") {
  using Nodes = std::vector<plan::TreeNode>;
  CHECK(plan::subtrees({8, 0, 8}) == Nodes{{0, 8}});
  CHECK(plan::subtrees({8, 2, 5}) == Nodes{{2, 4}, {4, 5}});
  CHECK(plan::subtrees({8, 5, 8}) == Nodes{{5, 6}, {6, 8}});
  CHECK(plan::subtrees({}).empty());
}

TEST_CASE("ranks hold each shard once, and their subtrees make the whole tree", "[plan]") {
  for (int v = 1; v <= 33; ++v)
    for (int ranks = 1; ranks <= v; ++ranks) {
      int next = 0;
      for (int r = 0; r < ranks; ++r) {
        const plan::VirtualShards s = plan::virtual_shards(v, ranks, r);
        REQUIRE(s.begin == next);
        REQUIRE(s.count() >= 1);
        for (const plan::TreeNode& n : plan::subtrees(s)) {
          REQUIRE(n.begin == next);
          REQUIRE(brackets({0, v}).find(brackets(n)) != std::string::npos);
          next = n.end;
        }
        REQUIRE(next == s.end);
      }
      REQUIRE(next == v);
    }
}
