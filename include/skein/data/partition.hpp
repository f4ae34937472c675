// SPDX-License-Identifier: Apache-2.0
// Who serves which positions of an epoch: pure functions of sizes, batch, ranks, rank and step. The union over the ranks of
// step s is exactly [s * batch, min((s + 1) * batch, size)), so any number of ranks sees the same global batches.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "../core/error.hpp"
#include "../plan/virtual_shards.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data {

/// shared: every rank can read the whole data set. local: each rank's data set is its own shard, of any size.
enum class Partition { shared, local };

/// What becomes of samples that do not fill the last batch: served as a smaller batch, or left out.
enum class LastBatch { keep, drop };

namespace detail {
/// Throws ArgumentError for a number that is no value of the setting's enumeration.
inline void demand_value(const char* who, const char* setting, Partition value) {
  skein::detail::demand_value(who, setting, value, Partition::local, "shared or local");
}
inline void demand_value(const char* who, const char* setting, LastBatch value) {
  skein::detail::demand_value(who, setting, value, LastBatch::drop, "keep or drop");
}
}  // namespace detail

/// The samples of one rank in one step.
struct Share {
  std::int64_t begin = 0, end = 0;  ///< positions in the epoch's order (local: in the order of this rank's shard)
  std::int64_t first = 0;           ///< position of the first sample among all samples of all ranks: unique in the epoch
  long global_count = 0;            ///< samples of all ranks in this step
  constexpr long count() const { return static_cast<long>(end - begin); }
  friend constexpr bool operator==(const Share&, const Share&) = default;
};

/// The samples of a batch: `.batch` over all ranks, or `.batch_per_rank`. One of them, never both.
struct BatchSize {
  long batch = 0;
  long batch_per_rank = 0;

  /// Samples of a batch over all ranks. Throws ArgumentError where both, or neither, is given, or it is no number of samples.
  constexpr long global(int ranks) const {
    if (batch < 0 || batch_per_rank < 0)
      throw ArgumentError("a batch size is negative: give .batch or .batch_per_rank a positive number");
    if (batch > 0 && batch_per_rank > 0)
      throw ArgumentError(
          text("both .batch ({}, over all ranks) and .batch_per_rank ({}) are given: keep one of them", batch, batch_per_rank));
    if (batch == 0 && batch_per_rank == 0)
      throw ArgumentError(
          "no batch size is given: set .batch (samples of a batch over all ranks) or .batch_per_rank (of fit: "
          ".loader.batch_per_rank)");
    if (batch_per_rank > std::numeric_limits<long>::max() / ranks)
      throw ArgumentError(text(".batch_per_rank {} on {} ranks is more than any batch can have: give the samples of one rank",
                               batch_per_rank, ranks));
    return batch > 0 ? batch : batch_per_rank * ranks;
  }
};

/// Where the r-th of `ranks` even parts of [0, n) begins: sizes differ by one at most.
constexpr std::int64_t even_part(std::int64_t n, int ranks, int r) { return plan::shard_begin(n, ranks, r); }

/// Steps of an epoch over a shared data set.
constexpr std::int64_t shared_steps(std::int64_t size, long batch, LastBatch last = LastBatch::keep) {
  return size / batch + (last == LastBatch::keep && size % batch != 0 ? 1 : 0);
}

/// What `rank` serves in `step` of a shared data set. May be empty where the last batch has fewer samples than there are ranks.
constexpr Share shared_share(std::int64_t size, long batch, int ranks, int rank, std::int64_t step) {
  const std::int64_t lo = step * batch, hi = size - lo < batch ? size : lo + batch, n = hi - lo;
  const std::int64_t begin = lo + even_part(n, ranks, rank), end = lo + even_part(n, ranks, rank + 1);
  return {begin, end, begin, static_cast<long>(n)};
}

/// What the rank that holds these virtual shards serves in `step`: they are cut out of each global batch by its size alone.
constexpr Share shared_share(std::int64_t size, long batch, const plan::VirtualShards& shards, std::int64_t step) {
  const std::int64_t lo = step * batch, hi = size - lo < batch ? size : lo + batch, n = hi - lo;
  const std::int64_t begin = lo + plan::shard_begin(n, shards.total, shards.begin),
                     end = lo + plan::shard_begin(n, shards.total, shards.end);
  return {begin, end, begin, static_cast<long>(n)};
}
/// The most samples that such a rank serves in a step.
constexpr long shards_capacity(long batch, const plan::VirtualShards& shards) {
  return (batch * shards.count() + shards.total - 1) / shards.total;
}

/// Samples of a full step on one rank of Partition::local. Throws ArgumentError where a rank would have none.
constexpr std::int64_t local_batch(long batch, int ranks, int rank) {
  if (batch < ranks)
    throw ArgumentError(text(
        "a batch of {} over {} ranks leaves ranks of Partition::local without samples: make .batch at least the number of ranks",
        batch, ranks));
  return even_part(batch, ranks, rank + 1) - even_part(batch, ranks, rank);
}

/// Steps of an epoch over shards: until the last rank has served its last sample (drop: until the first has no full batch).
constexpr std::int64_t local_steps(std::span<const std::int64_t> sizes, long batch, LastBatch last = LastBatch::keep) {
  const int ranks = static_cast<int>(sizes.size());
  std::int64_t steps = last == LastBatch::keep || ranks == 0 ? 0 : INT64_MAX;
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t own =
        shared_steps(sizes[static_cast<std::size_t>(r)], static_cast<long>(local_batch(batch, ranks, r)), last);
    if (last == LastBatch::keep ? own > steps : own < steps) steps = own;
  }
  return steps;
}

namespace detail {
/// Throws ArgumentError: an epoch has no step. `sizes`: of Partition::local, else empty.
[[noreturn]] inline void refuse_no_step(const char* set, std::int64_t size, std::span<const std::int64_t> sizes, long batch,
                                        LastBatch last) {
  const std::string what = "loader: an epoch of " + std::string(set) + " has no step: ";
  if (last == LastBatch::keep) throw ArgumentError(what + "no rank has samples");
  std::string why = text("a batch of {} over all ranks is more than its {} samples", batch, size);
  const int ranks = static_cast<int>(sizes.size());
  for (int r = ranks - 1; r >= 0; --r)
    if (const std::int64_t own = sizes[static_cast<std::size_t>(r)], part = local_batch(batch, ranks, r); own < part)
      why = text("rank {} has {} samples, of a batch of {} it has {}", r, own, batch, part);
  throw ArgumentError(what + "LastBatch::drop (of fit: .loader.last) leaves out batches that are not full, and " + why +
                      ": take a smaller batch, or LastBatch::keep");
}
}  // namespace detail

/// What `rank` serves in `step` of its own shard; empty once it has served all. `sizes` holds the shards of all ranks.
constexpr Share local_share(std::span<const std::int64_t> sizes, long batch, int rank, std::int64_t step) {
  const int ranks = static_cast<int>(sizes.size());
  Share share;
  std::int64_t before = 0;
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t b = local_batch(batch, ranks, r), size = sizes[static_cast<std::size_t>(r)];
    const std::int64_t begin = step * b < size ? step * b : size, end = size - begin < b ? size : begin + b;
    share.global_count += static_cast<long>(end - begin);
    if (r == rank) share.begin = begin, share.end = end, share.first = before + begin;
    before += size;
  }
  return share;
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
