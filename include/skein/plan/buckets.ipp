// SPDX-License-Identifier: Apache-2.0
// The bodies of buckets.hpp.
#pragma once
#include <algorithm>

#include "buckets.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE std::vector<Range> buckets(std::span<const LayerNode> operations, long end, BucketSize size) {
  std::vector<Range> all;
  for_each_bucket(operations, end, size, [&](Range r) { all.push_back(r); });
  return all;
}

SKEIN_INLINE std::vector<Range> without_frozen(std::vector<Range> buckets, std::span<const LayerNode> operations,
                                               long first_trained) {
  long begin = 0;
  for (const LayerNode& o : operations)
    if (o.parameter + o.parameters <= first_trained) begin = std::max(begin, o.parameter + o.parameters);
  std::erase_if(buckets, [&](const Range& b) { return b.end <= begin; });
  for (Range& b : buckets) b.begin = std::max(b.begin, begin);
  return buckets;
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
