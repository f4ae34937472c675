// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/logical.hpp>

#include <catch2/catch.hpp>

namespace plan = skein::plan;

namespace {
/// A (2, 9) matrix stored in rows of 16, four values without a gap, and a (3, 8) matrix.
constexpr plan::Entry entry(long offset, long stored, skein::Extents e) {
  plan::Entry x;
  x.offset = offset;
  x.stored = stored;
  x.extents = e;
  return x;
}
constexpr plan::Entry entries[] = {entry(0, 32, {2, {2, 9}}), entry(32, 4, {1, {4}}), entry(36, 24, {2, {3, 8}})};
static_assert([] {
  const auto runs = plan::logical_runs(entries, {0, 60});
  return runs.size() == 3 && runs[0] == plan::Range{0, 9} && runs[1] == plan::Range{16, 25} && runs[2] == plan::Range{32, 60} &&
         plan::count_of(runs) == 46;
}());
}  // namespace

TEST_CASE("the logical values of a part of an arena", "[plan]") {
  CHECK(plan::logical_runs(entries, {32, 60}) == std::vector<plan::Range>{{32, 60}});
  CHECK(plan::logical_runs(entries, {0, 32}) == std::vector<plan::Range>{{0, 9}, {16, 25}});
  CHECK(plan::logical_runs(entries, {1, 60}) == std::vector<plan::Range>{{32, 60}});  // whole parameters only
  CHECK(plan::logical_runs({}, {0, 60}).empty());
  std::vector<std::size_t> whose;
  plan::for_each_run(entries, {0, 60}, [&](std::size_t i, plan::Range) { whose.push_back(i); });
  CHECK(whose == std::vector<std::size_t>{0, 0, 1, 2});
}
