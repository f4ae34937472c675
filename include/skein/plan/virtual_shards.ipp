// SPDX-License-Identifier: Apache-2.0
// The bodies of virtual_shards.hpp.
#pragma once
#include "virtual_shards.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE std::vector<TreeNode> subtrees(const VirtualShards& s) {
  std::vector<TreeNode> all;
  if (s.count() > 0) for_each_subtree(s, TreeNode{0, s.total}, [&](TreeNode n) { all.push_back(n); });
  return all;
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
