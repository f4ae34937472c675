// SPDX-License-Identifier: Apache-2.0
#include <skein/data/partition.hpp>

#include <limits>
#include <vector>

#include <skein/core/random.hpp>

#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace sk::data;
using data_test::thrown;

static_assert(shared_steps(1000, 128) == 8 && shared_steps(1000, 128, LastBatch::drop) == 7 && shared_steps(5, 128) == 1);
static_assert(shared_share(1000, 128, 1, 0, 7) == Share{896, 1000, 896, 104});
static_assert(shared_share(1000, 128, 4, 3, 0) == Share{96, 128, 96, 128});
static_assert(shared_share(10, 8, 4, 0, 1).count() == 0 && shared_share(10, 8, 4, 3, 1).count() == 1);
static_assert(BatchSize{.batch = 128}.global(4) == 128 && BatchSize{.batch_per_rank = 32}.global(4) == 128);

TEST_CASE("shared: every sample once an epoch, in the same global batches, over sizes, batches and ranks") {
  const auto check = [](std::int64_t size, long batch, int ranks) {
    const std::int64_t steps = shared_steps(size, batch);
    std::int64_t next = 0;
    long fewest = 1 << 30, most = 0;
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::int64_t whole = std::min<std::int64_t>(size, (s + 1) * batch) - s * batch;
      for (int r = 0; r < ranks; ++r) {
        const Share share = shared_share(size, batch, ranks, r, s);
        if (share.begin != next || share.first != next || share.end < share.begin || share.global_count != whole) return false;
        if (s + 1 < steps) fewest = std::min(fewest, share.count()), most = std::max(most, share.count());
        next = share.end;
      }
      if (next != s * batch + whole) return false;  // the union of the ranks is the global batch
    }
    return next == size && (steps < 2 || most - fewest <= 1);
  };
  for (std::int64_t size = 1; size <= 40; ++size)
    for (long batch = 1; batch <= 12; ++batch)
      for (int ranks = 1; ranks <= 9; ++ranks) {
        INFO(size << " samples, batch " << batch << ", " << ranks << " ranks");
        REQUIRE(check(size, batch, ranks));
      }
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto size = static_cast<std::int64_t>(1 + sk::random_below(5, i, 0, 100000));
    const auto batch = static_cast<long>(64 + sk::random_below(5, i, 1, 4000));
    const auto ranks = static_cast<int>(1 + sk::random_below(5, i, 2, 100));
    INFO(size << " samples, batch " << batch << ", " << ranks << " ranks");
    REQUIRE(check(size, batch, ranks));
  }
}

TEST_CASE("virtual shards: a rank serves whole ones, which the batch alone cuts out") {
  for (std::int64_t size : {1, 7, 40, 103})
    for (long batch : {1L, 8L, 10L, 64L})
      for (int shards : {1, 5, 8})
        for (int ranks = 1; ranks <= shards; ++ranks)
          for (std::int64_t s = 0; s < shared_steps(size, batch); ++s) {
            std::int64_t next = s * batch;
            for (int r = 0; r < ranks; ++r) {
              const sk::plan::VirtualShards v = sk::plan::virtual_shards(shards, ranks, r);
              const Share share = shared_share(size, batch, v, s);
              REQUIRE((share.begin == next && share.first == next));
              REQUIRE(share.begin == shared_share(size, batch, shards, v.begin, s).begin);  // as if each shard were a rank
              REQUIRE(share.end == shared_share(size, batch, shards, v.end - 1, s).end);
              REQUIRE(share.count() <= shards_capacity(batch, v));
              next = share.end;
            }
            REQUIRE(next == std::min<std::int64_t>(size, (s + 1) * batch));
          }
}

TEST_CASE("local: every rank serves its shard once, in as many steps as the longest needs") {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const int ranks = static_cast<int>(1 + sk::random_below(6, i, 0, 8));
    const long batch = static_cast<long>(ranks + static_cast<long>(sk::random_below(6, i, 1, 50)));
    std::vector<std::int64_t> sizes;
    for (int r = 0; r < ranks; ++r)
      sizes.push_back(static_cast<std::int64_t>(sk::random_below(6, i, 2 + static_cast<std::uint64_t>(r), 200)));
    const std::int64_t steps = local_steps(sizes, batch);
    std::vector<std::int64_t> next(static_cast<std::size_t>(ranks), 0);
    std::vector<char> seen;
    std::int64_t total = 0;
    for (const auto s : sizes) total += s;
    seen.assign(static_cast<std::size_t>(total), 0);
    bool last_step_serves = steps == 0;
    for (std::int64_t s = 0; s < steps; ++s) {
      long sum = 0, global = -1;
      for (int r = 0; r < ranks; ++r) {
        const Share share = local_share(sizes, batch, r, s);
        REQUIRE(share.begin == next[static_cast<std::size_t>(r)]);
        next[static_cast<std::size_t>(r)] = share.end;
        REQUIRE(share.count() <= local_batch(batch, ranks, r));
        REQUIRE((global == -1 || global == share.global_count));
        global = share.global_count;
        sum += share.count();
        for (long k = 0; k < share.count(); ++k) REQUIRE(seen[static_cast<std::size_t>(share.first + k)]++ == 0);
      }
      REQUIRE(sum == global);
      if (s + 1 == steps) last_step_serves = sum > 0;
    }
    REQUIRE(next == sizes);
    REQUIRE(last_step_serves);
  }
  const std::int64_t equal[] = {100, 100}, uneven[] = {100, 35};
  CHECK(local_steps(equal, 20) == 10);
  CHECK(local_steps(uneven, 20) == 10);
  CHECK(local_steps(uneven, 20, LastBatch::drop) == 3);
  CHECK(local_share(uneven, 20, 1, 3) == Share{30, 35, 130, 15});
  CHECK(local_share(uneven, 20, 1, 9).count() == 0);
  CHECK(
      thrown([&] { local_steps(uneven, 1); }).says("a batch of 1 over 2 ranks leaves ranks of Partition::local without samples"));
}

TEST_CASE("a batch size is given once") {
  CHECK(thrown([] { (void)BatchSize{}.global(2); }).text ==
        "no batch size is given: set .batch (samples of a batch over all ranks) or .batch_per_rank (of fit: "
        ".loader.batch_per_rank)");
  CHECK(thrown([] {
          (void)BatchSize{128, 64}.global(2);
        }).text == "both .batch (128, over all ranks) and .batch_per_rank (64) are given: keep one of them");
  CHECK(thrown([] { (void)BatchSize{-1, 0}.global(2); }).says("a batch size is negative"));
  CHECK(thrown([] { (void)BatchSize{0, std::numeric_limits<long>::max() / 2}.global(3); }).says("more than any batch can have"));
}
