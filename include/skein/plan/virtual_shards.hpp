// SPDX-License-Identifier: Apache-2.0
// Virtual shards: a global batch in V parts whose sizes depend on the batch alone, of which each rank holds a contiguous run, and
// the binary tree by which their gradients are summed. The tree is fixed by V, so that a sum has the same bits however many ranks
// and threads take part. Pure functions.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Shards [begin, end) of `total`; none where total is 0.
struct VirtualShards {
  int total = 0, begin = 0, end = 0;

  constexpr int count() const { return end - begin; }
  explicit constexpr operator bool() const { return total > 0; }
  friend constexpr bool operator==(const VirtualShards&, const VirtualShards&) = default;
};

/// The shards of one rank: [V r / R, V (r + 1) / R).
constexpr VirtualShards virtual_shards(int total, int ranks, int rank) {
  const long v = total;
  return {total, static_cast<int>(v * rank / ranks), static_cast<int>(v * (rank + 1) / ranks)};
}

/// Where shard v of a global batch of n samples begins: n v / V.
constexpr std::int64_t shard_begin(std::int64_t n, int total, int v) { return n / total * v + n % total * v / total; }

/// A node of the tree: the shards below it. It has two children, the left one with the greatest power of two of shards that
/// leaves some to the right.
struct TreeNode {
  int begin = 0, end = 0;

  constexpr bool leaf() const { return end - begin <= 1; }
  constexpr int middle() const { return begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(end - begin - 1))); }
  friend constexpr bool operator==(const TreeNode&, const TreeNode&) = default;
};

/// Calls visit(TreeNode), in order, for each largest subtree of the whole tree that lies within the shards.
template <class Visit> constexpr void for_each_subtree(const VirtualShards& s, TreeNode at, Visit&& visit) {
  if (s.begin <= at.begin && at.end <= s.end) return visit(at);
  if (at.leaf() || at.end <= s.begin || s.end <= at.begin) return;
  for_each_subtree(s, TreeNode{at.begin, at.middle()}, visit);
  for_each_subtree(s, TreeNode{at.middle(), at.end}, visit);
}
/// Those subtrees: what a rank can sum alone, and then exchanges.
std::vector<TreeNode> subtrees(const VirtualShards& s);

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "virtual_shards.ipp"
#endif
