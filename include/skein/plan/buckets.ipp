// SPDX-License-Identifier: Apache-2.0
// The bodies of buckets.hpp.
#pragma once
#include "buckets.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE std::vector<Range> buckets(std::span<const LayerNode> operations, long end, BucketSize size) {
  std::vector<Range> all;
  for_each_bucket(operations, end, size, [&](Range r) { all.push_back(r); });
  return all;
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
