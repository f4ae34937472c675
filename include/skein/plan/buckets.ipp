// SPDX-License-Identifier: Apache-2.0
// The bodies of buckets.hpp.
#pragma once
#include <algorithm>

#include "buckets.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE std::vector<Range> buckets(std::span<const LayerNode> layers, long end, BucketSize size) {
  std::vector<Range> all;
  for_each_bucket(layers, end, size, [&](Range r) { all.push_back(r); });
  return all;
}

SKEIN_INLINE std::vector<Range> without_frozen(std::vector<Range> buckets, std::span<const LayerNode> layers,
                                               long first_trained) {
  long begin = 0;
  for (const LayerNode& o : layers)
    if (o.parameter + o.parameters <= first_trained) begin = std::max(begin, o.parameter + o.parameters);
  std::vector<Range> trained;
  for (const Range& b : buckets)
    if (b.end > begin) trained.push_back({std::max(b.begin, begin), b.end});
  return trained;
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
