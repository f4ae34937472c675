// SPDX-License-Identifier: Apache-2.0
// Gradient buckets: contiguous ranges of the gradient arena in true backward order. Backward makes gradients ready from the
// back of the arena to its front, so a bucket is ready when the front of it is.
#pragma once
#include <span>
#include <vector>

#include "program.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// The least scalars of a bucket, and of the first: it leaves while most of backward is still to come, and may be smaller.
struct BucketSize {
  long at_least = 1, first = at_least;
  constexpr BucketSize(long least) : at_least(least), first(least) {}  // NOLINT: a number says both
  constexpr BucketSize(long least, long first_least) : at_least(least), first(first_least) {}
};

/// Cuts [0, end) into ranges of at least so many scalars (the last one takes what is left), at boundaries of layers,
/// from the back. `end` may lie behind the last parameter: what follows it travels with the first bucket. Calls
/// visit(Range) for each bucket. Linear in the number of layers.
template <class Visit>
constexpr void for_each_bucket(std::span<const LayerNode> layers, long end, BucketSize size, Visit&& visit) {
  long at_least = size.first;
  for (int i = static_cast<int>(layers.size()) - 1; i >= 0; --i) {
    const LayerNode& o = layers[static_cast<std::size_t>(i)];
    if (o.parameters == 0) continue;
    if (end - o.parameter >= at_least || o.parameter == 0) {
      visit(Range{o.parameter, end});
      end = o.parameter;
      at_least = size.at_least;
    }
  }
  if (end > 0) visit(Range{0, end});  // a network without parameters: only what follows them
}

/// How many buckets for_each_bucket makes.
constexpr int bucket_count(std::span<const LayerNode> layers, long end, long at_least) {
  int n = 0;
  for_each_bucket(layers, end, at_least, [&](Range) { ++n; });
  return n;
}

/// The buckets of for_each_bucket, in its order.
std::vector<Range> buckets(std::span<const LayerNode> layers, long end, BucketSize size);

/// The same buckets without the layers that end at `first_trained` or before: their gradients are not made.
std::vector<Range> without_frozen(std::vector<Range> buckets, std::span<const LayerNode> layers, long first_trained);

/// The r-th of `ranks` even parts of [0, n), in whole cache lines of 16 scalars but for the last; parts may be empty.
constexpr Range even_range(long n, int ranks, int r) {
  const long lines = (n + 15) / 16, begin = lines * r / ranks * 16, end = lines * (r + 1) / ranks * 16;
  return {begin < n ? begin : n, end < n ? end : n};
}

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "buckets.ipp"
#endif
