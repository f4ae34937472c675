// SPDX-License-Identifier: Apache-2.0
// Gradient buckets partition the arena and its tail, from the back, at boundaries of layers, whatever the program.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include <skein/core/random.hpp>
#include <skein/plan/buckets.hpp>

namespace sk = skein;
namespace plan = skein::plan;

namespace {

constexpr long tail = 16;

/// Layers with and without parameters, sizes from 1 to 1000.
std::vector<plan::LayerNode> random_program(std::uint64_t seed) {
  const auto draw = [&, i = std::uint64_t(0)](long n) mutable {
    return static_cast<long>(sk::random_uniform(seed, 0, i++) * static_cast<float>(n));
  };
  auto d = draw;
  std::vector<plan::LayerNode> all(static_cast<std::size_t>(1 + d(40)));
  long at = 0;
  for (plan::LayerNode& o : all) {
    o.parameter = at;
    o.parameters = d(3) == 0 ? 0 : 1 + d(1000);
    at += o.parameters;
  }
  return all;
}
long stored(const std::vector<plan::LayerNode>& p) { return p.back().parameter + p.back().parameters; }

constexpr plan::LayerNode fixed[] = {{.parameter = 0, .parameters = 10},
                                     {.parameter = 10},
                                     {.parameter = 10, .parameters = 30},
                                     {.parameter = 40, .parameters = 5}};

}  // namespace

TEST_CASE("buckets are constants", "[plan]") {
  STATIC_REQUIRE(plan::bucket_count(fixed, 45 + tail, 1) == 3);
  STATIC_REQUIRE(plan::bucket_count(fixed, 45 + tail, 22) == 2);
  STATIC_REQUIRE(plan::bucket_count(fixed, 45 + tail, 1000) == 1);
  CHECK(plan::buckets(fixed, 45 + tail, 22) ==
        std::vector<plan::Range>{{10, 61}, {0, 10}});  // 21 do not do: the next layer joins
  CHECK(plan::buckets(fixed, 45 + tail, 21) == std::vector<plan::Range>{{40, 61}, {10, 40}, {0, 10}});
}

TEST_CASE("buckets end where the layers begin that are trained", "[plan]") {
  const auto cut = [](long first_trained) {
    return plan::without_frozen(plan::buckets(fixed, 45 + tail, 21), fixed, first_trained);
  };
  CHECK(cut(0) == plan::buckets(fixed, 45 + tail, 21));
  CHECK(cut(9) == cut(0));  // within the first layer
  CHECK(cut(10) == std::vector<plan::Range>{{40, 61}, {10, 40}});
  CHECK(cut(39) == cut(10));
  CHECK(cut(40) == std::vector<plan::Range>{{40, 61}});
  CHECK(cut(45) == std::vector<plan::Range>{{45, 61}});  // the sums of the batch are left
  CHECK(plan::without_frozen(plan::buckets(fixed, 45 + tail, 1000), fixed, 10) == std::vector<plan::Range>{{10, 61}});
}

TEST_CASE("the first bucket may be smaller than the others", "[plan]") {
  CHECK(plan::buckets(fixed, 45 + tail, {1000, 21}) == std::vector<plan::Range>{{40, 61}, {0, 40}});
  CHECK(plan::buckets(fixed, 45 + tail, {30, 1}) == std::vector<plan::Range>{{40, 61}, {10, 40}, {0, 10}});
  CHECK(plan::buckets(fixed, 45 + tail, {31, 22}) == std::vector<plan::Range>{{10, 61}, {0, 10}});
}

TEST_CASE("buckets partition the arena from the back, at boundaries of layers", "[plan]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto program = random_program(seed);
    const long end = stored(program) + tail;
    for (const long least : {1L, 17L, 300L, 5000L, 1L << 30}) {
      INFO("seed " << seed << ", at least " << least);
      const auto buckets = plan::buckets(program, end, least);
      REQUIRE(!buckets.empty());
      CHECK(static_cast<int>(buckets.size()) == plan::bucket_count(program, end, least));
      CHECK(buckets.front().end == end);  // the tail travels with the first
      CHECK(buckets.back().begin == 0);
      for (std::size_t i = 0; i < buckets.size(); ++i) {
        const plan::Range& b = buckets[i];
        CHECK(b.begin < b.end);
        if (i > 0) CHECK(b.end == buckets[i - 1].begin);
        if (i + 1 < buckets.size()) CHECK(b.end - b.begin >= least);
        CHECK((b.begin == 0 || std::any_of(program.begin(), program.end(), [&](const plan::LayerNode& o) {
                 return o.parameters > 0 && o.parameter == b.begin;
               })));
      }
    }
  }
}

TEST_CASE("what follows the parameters is a bucket of its own where there are none", "[plan]") {
  const plan::LayerNode none[] = {{}, {}};
  CHECK(plan::buckets(none, tail, 100) == std::vector<plan::Range>{{0, tail}});
  CHECK(plan::buckets({}, 0, 100).empty());
}
