// SPDX-License-Identifier: Apache-2.0
#include <skein/data/loader.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>
#include <skein/tensor/tensor.hpp>

#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace sk::data;
using data_test::thrown;

namespace {
std::atomic<long> allocations{0};
}
// AddressSanitizer has an operator new of its own, which must not be replaced by half.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SKEIN_TEST_COUNTS_NOTHING
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(SKEIN_TEST_COUNTS_NOTHING)
__attribute__((noinline)) void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#else
#undef SKEIN_TEST_COUNTS_NOTHING
#define SKEIN_TEST_COUNTS_NOTHING
#endif

namespace {
/// n samples of five values i, i + 0.125, ... with label i % 7.
InMemory<float> ramp(int n) {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < 5; ++j) x.push_back(static_cast<float>(i) + 0.125f * static_cast<float>(j));
    labels.push_back(i % 7);
  }
  return {sk::Extents{1, {5}}, std::move(x), std::move(labels), 7};
}

template <class L> std::vector<std::int64_t> served(L& loader, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  for (const auto& b : loader.epoch(epoch)) all.insert(all.end(), b.indices, b.indices + b.count);
  return all;
}
}  // namespace

TEMPLATE_TEST_CASE("batches hold the samples that the order names, padded with zeros", "", float, double) {
  const auto data = ramp(50);
  const Prefetch prefetch = GENERATE(Prefetch::on, Prefetch::off);
  Loader<TestType> loader{data, {.batch = 16, .seed = {3}, .prefetch = prefetch}};
  CHECK(loader.prefetching() == (prefetch == Prefetch::on));
  REQUIRE(loader.steps() == 4);
  for (std::int64_t e = 0; e < 3; ++e) {
    std::int64_t step = 0, first = 0;
    const Permutation order(50, {3}, e);
    for (const auto& b : loader.epoch(e)) {
      CHECK(b.epoch == e);
      CHECK(b.step == step++);
      CHECK(b.first == first);
      CHECK(b.count == (b.step < 3 ? 16 : 2));
      CHECK(b.global_count == b.count);
      CHECK(b.pitch == sk::row_pitch(5));
      CHECK(reinterpret_cast<std::uintptr_t>(b.x) % 64 == 0);
      for (long i = 0; i < b.count; ++i) {
        const auto index = order(first + i);
        CHECK(b.indices[i] == index);
        CHECK(b.labels[i] == index % 7);
        for (int j = 0; j < 5; ++j) CHECK(b.row(i)[j] == static_cast<TestType>(static_cast<double>(index) + 0.125 * j));
        for (long j = 5; j < b.pitch; ++j) CHECK(b.row(i)[j] == 0);
        CHECK(b.template view<2>()(i, 4) == b.row(i)[4]);
      }
      first += b.count;
      CHECK(b.template view<2>().extents == sk::dims(b.count, 5));
      CHECK(thrown([&] { b.template view<4>(); }).text == "batch: samples of rank 1 make a tensor of rank 2, not of 4");
    }
    CHECK(step == 4);
  }
}

TEST_CASE("all ranks together serve what one rank serves, in the same global batches") {
  const auto data = ramp(103);
  Loader whole{data, {.batch = 20, .seed = {1}}};
  std::vector<std::vector<std::int64_t>> batches;
  for (const auto& b : whole.epoch(2)) batches.emplace_back(b.indices, b.indices + b.count);
  for (const int ranks : {2, 3, 4, 7}) {
    std::vector<std::vector<std::int64_t>> joined(batches.size());
    for (int r = 0; r < ranks; ++r) {
      Loader part{data, {.batch = 20, .seed = {1}, .ranks = ranks, .rank = r}};
      REQUIRE(part.steps() == whole.steps());
      for (const auto& b : part.epoch(2)) {
        auto& batch = joined[static_cast<std::size_t>(b.step)];
        CHECK(b.first == b.step * 20 + static_cast<std::int64_t>(batch.size()));
        batch.insert(batch.end(), b.indices, b.indices + b.count);
        CHECK(b.count <= part.capacity());
        CHECK(b.global_count == static_cast<long>(batches[static_cast<std::size_t>(b.step)].size()));
      }
    }
    CHECK(joined == batches);
  }
}

TEST_CASE("no batch has more samples than the staging memory holds, whatever is left for the last one") {
  const auto data = ramp(40);  // 5 ranks: rank 2 has more of 7 samples than of 8
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (long batch = 1; batch <= 23; ++batch)
      for (std::int64_t size = 1; size <= 40; size += 3) {
        const auto some = data.take(size);
        for (int r = 0; r < ranks; ++r) {
          Loader loader{some, {.batch = batch, .shuffle = false, .ranks = ranks, .rank = r, .prefetch = Prefetch::off}};
          for (std::int64_t s = 0; s < loader.steps(); ++s) REQUIRE(loader.share(s).count() <= loader.capacity());
        }
      }
}

TEST_CASE("order: shuffled by seed and epoch, or as it stands") {
  const auto data = ramp(64);
  Loader loader{data, {.batch = 10, .seed = {1}}}, plain{data, {.batch = 10, .shuffle = false}};
  const auto a = served(loader, 0), b = served(loader, 1);
  CHECK(a != b);
  CHECK(a == served(loader, 0));
  auto sorted = a;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == served(plain, 5));
  CHECK(std::is_sorted(sorted.begin(), sorted.end()));
  Loader other{data, {.batch = 10, .seed = {2}}};
  CHECK(served(other, 0) != a);
  Loader drop{data, {.batch = 10, .last = LastBatch::drop}};
  CHECK(served(drop, 0).size() == 60);
}

TEST_CASE("Partition::local: each rank serves its shard, all take the same number of steps") {
  const std::int64_t sizes[] = {40, 0, 13};
  std::int64_t total = 0;
  for (int r = 0; r < 3; ++r) {
    const auto shard = ramp(static_cast<int>(sizes[r]));
    Loader loader{shard,
                  {.batch_per_rank = 8, .seed = {1}, .ranks = 3, .rank = r, .partition = Partition::local, .sizes = sizes}};
    CHECK(loader.steps() == 5);
    CHECK(loader.batch() == 24);
    auto all = served(loader, 0);
    CHECK(static_cast<std::int64_t>(all.size()) == sizes[r]);
    std::sort(all.begin(), all.end());
    CHECK(std::unique(all.begin(), all.end()) == all.end());
    std::int64_t steps = 0;
    for (const auto& b : loader.epoch(1)) {
      ++steps;
      CHECK(b.global_count == (b.step == 0 ? 16 : b.step == 1 ? 13 : 8));
      total += b.count;
    }
    CHECK(steps == 5);
  }
  CHECK(total == 53);
}

TEST_CASE("a position that was saved goes on with exactly the batches that are left") {
  const auto data = ramp(97);
  const Prefetch prefetch = GENERATE(Prefetch::on, Prefetch::off);
  const LoaderOptions options{.batch = 10, .seed = {4}, .prefetch = prefetch};
  for (std::int64_t stop = 0; stop < 20; ++stop) {
    std::vector<std::int64_t> straight, parts;
    {
      Loader loader{data, options};
      for (std::int64_t e = 0; e < 2; ++e)
        for (const auto& b : loader.epoch(e)) straight.insert(straight.end(), b.indices, b.indices + b.count);
      CHECK(loader.position() == Position{2, 0});
    }
    Position saved;
    {
      Loader loader{data, options};
      for (std::int64_t e = 0; e < 2; ++e)
        for (const auto& b : loader.epoch(e)) {
          if (b.epoch * 10 + b.step == stop) goto killed;
          parts.insert(parts.end(), b.indices, b.indices + b.count);
          saved = loader.position();
        }
    killed:;
    }
    CHECK(saved == Position{stop / 10, stop % 10});
    Loader loader{data, options};
    loader.seek(saved);
    CHECK(loader.position() == saved);
    for (std::int64_t e = saved.epoch; e < 2; ++e)
      for (const auto& b : loader.epoch(e)) parts.insert(parts.end(), b.indices, b.indices + b.count);
    CHECK(parts == straight);
  }
  Loader loader{data, options};
  loader.seek({0, 10});
  CHECK(loader.position() == Position{1, 0});
  CHECK(thrown([&] { loader.seek({0, 11}); }).says("step 11 of epoch 0 is not within 10 steps an epoch"));
}

TEST_CASE("a loop may be left early and another epoch begun") {
  const auto data = ramp(200);
  Loader loader{data, {.batch = 10, .seed = {4}, .prefetch = Prefetch::on}};
  for (int turn = 0; turn < 50; ++turn)
    for (const auto& b : loader.epoch(turn)) {
      CHECK(b.epoch == turn);
      CHECK(b.labels[3] == b.indices[3] % 7);
      if (b.step == turn % 20) break;
    }
  Loader fresh{data, {.batch = 10, .seed = {4}, .prefetch = Prefetch::off}};
  CHECK(served(loader, 3) == served(fresh, 3));
}

TEST_CASE("an exception of the data set reaches the loop at its own step") {
  const Prefetch prefetch = GENERATE(Prefetch::on, Prefetch::off);
  const auto data = map(ramp(50), [](auto sample, std::int64_t index, std::int64_t epoch) {
    if (index == 35 && epoch == 1) throw std::runtime_error("sample 35 is unreadable");
    sample[0] += 0;
  });
  Loader loader{data, {.batch = 10, .shuffle = false, .prefetch = prefetch}};
  CHECK(served(loader, 0).size() == 50);
  std::size_t seen = 0;
  std::string text;
  try {
    for (const auto& b : loader.epoch(1)) seen += static_cast<std::size_t>(b.count);
  } catch (const std::runtime_error& e) { text = e.what(); }
  CHECK(text == "sample 35 is unreadable");
  CHECK(seen == 30);
  CHECK(served(loader, 2).size() == 50);  // and the loader goes on
}

TEST_CASE("target vectors are staged with their pitch") {
  std::vector<float> x, y;
  for (int i = 0; i < 30; ++i) {
    x.push_back(static_cast<float>(i));
    for (int j = 0; j < 5; ++j) y.push_back(static_cast<float>(10 * i + j));
  }
  const auto data = from_tensors(x, y);
  Loader loader{data, {.batch = 8}};
  for (const auto& b : loader.epoch(0)) {
    CHECK(b.labels == nullptr);
    CHECK(b.target_length == 5);
    CHECK(b.target_pitch == 8);
    CHECK(b.target_view()(0, 4) == b.target(0)[4]);
    for (long i = 0; i < b.count; ++i) {
      CHECK(b.target(i)[4] == 10 * b.row(i)[0] + 4);
      CHECK(b.target(i)[5] == 0);
    }
  }
}

TEST_CASE("options that contradict each other are refused in a sentence") {
  const auto data = ramp(10);
  const std::int64_t sizes[] = {10, 5};
  const auto says = [&](LoaderOptions options) { return thrown([&] { Loader loader{data, options}; }).text; };
  CHECK(says({}) ==
        "no batch size is given: set .batch (samples of a step over all ranks) or .batch_per_rank (of fit: "
        ".loader.batch_per_rank)");
  CHECK(says({.batch = 4, .ranks = 2, .rank = 2}) == "loader: rank 2 is not one of 2");
  CHECK(says({.batch = 4, .sizes = sizes}) == "loader: .sizes belongs to Partition::local; a shared data set has one size");
  CHECK(says({.batch = 4, .ranks = 3, .partition = Partition::local, .sizes = sizes}) ==
        "loader: Partition::local needs .sizes of all 3 ranks, 2 are given");
  CHECK(says({.batch = 4, .ranks = 2, .rank = 1, .partition = Partition::local, .sizes = sizes}) ==
        "loader: .sizes says that rank 1 has 5 samples, its data set has 10");
  CHECK(says({.batch = 4, .ranks = 2, .shards = 1}) ==
        "loader: 1 virtual shards are too few for 2 ranks: each rank holds at least one");
  CHECK(says({.batch = 4, .shards = 2, .partition = Partition::local}).find("use Partition::shared") != std::string::npos);
  CHECK(thrown([] { Loader<float> loader{DatasetView{}, LoaderOptions{.batch = 1}}; }).says("give it a data set"));
  CHECK(thrown([] {
          const auto none = ramp(0);
          Loader loader{none, {.batch = 1}};
        }).text == "loader: the data set has no samples");
  Loader loader{data, {.batch = 2, .prefetch = Prefetch::off}};
  auto outer = loader.epoch(0).begin();
  auto inner = loader.epoch(1).begin();
  CHECK(inner->epoch == 1);
  CHECK(thrown([&] { ++outer; }).says("two loops over epochs of one loader are mixed"));
}

TEST_CASE("the prefetch thread is there only where a core is spare") {
  const auto data = ramp(10);
  CHECK_FALSE(Loader{data, {.batch = 2, .busy_threads = sk::available_cores()}}.prefetching());
  CHECK(Loader{data, {.batch = 2, .busy_threads = sk::available_cores() - 1}}.prefetching());
}

TEST_CASE("no page fault and no allocation in any step after the first epoch") {
  const auto data = ramp(20000).subset([] {
    std::vector<std::int64_t> all(20000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    return all;
  }());
  const Prefetch prefetch = GENERATE(Prefetch::on, Prefetch::off);
  Loader loader{data, {.batch = 64, .prefetch = prefetch}};
  double sum = 0;
  const auto epoch = [&](std::int64_t e) {
    for (const auto& b : loader.epoch(e)) sum += b.x[0];
  };
  epoch(0);
  long fewest = 1000;
  const long before_all = allocations;
  for (std::int64_t e = 1; e < 6; ++e) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    epoch(e);
    getrusage(RUSAGE_SELF, &after);
    fewest = std::min(fewest, after.ru_minflt - before.ru_minflt);
  }
  const long made = allocations - before_all;
#ifndef SKEIN_TEST_COUNTS_NOTHING
  CHECK(before_all > 0);
#endif
  CHECK(made == 0);
  CHECK(sum > 0);
  CHECK(fewest == 0);
}

TEST_CASE("labels of several positions are staged one behind the other") {
  sk::Tensor<float, 2> x(sk::dims(30, 1));
  sk::Tensor<std::int32_t, 2> y(sk::dims(30, 5));
  for (long i = 0; i < 30; ++i) {
    x(i, 0) = static_cast<float>(i);
    for (long j = 0; j < 5; ++j) y(i, j) = static_cast<std::int32_t>(10 * i + j);
  }
  const auto data = from_tensors(x, y);
  Loader loader{data, {.batch = 8, .ranks = 2, .rank = 1}};
  for (const auto& b : loader.epoch(0)) {
    CHECK(b.labels_each == 5);
    for (long i = 0; i < b.count; ++i)
      for (long j = 0; j < 5; ++j) CHECK(b.labels[5 * i + j] == 10 * static_cast<int>(b.row(i)[0]) + j);
  }
}
