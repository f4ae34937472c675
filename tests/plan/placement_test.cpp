// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/placement.hpp>

#include <array>

#include <catch2/catch.hpp>

namespace plan = skein::plan;

namespace {
/// Rows of so many stored scalars, one behind the other.
template <std::size_t N> constexpr std::array<plan::Entry, N> rows(const long (&stored)[N]) {
  std::array<plan::Entry, N> table;
  long at = 0;
  for (std::size_t i = 0; i < N; ++i) {
    table[i].offset = at;
    table[i].stored = stored[i];
    at += stored[i];
  }
  return table;
}
constexpr long sizes[] = {320, 16, 640, 3, 48, 2};
constexpr auto table = rows(sizes);
constexpr long stored = 1029;

constexpr bool are(const std::vector<plan::Range>& found, std::initializer_list<plan::Range> expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end());
}
}  // namespace

static_assert(are(plan::even_slices(100, 3), {{0, 32}, {32, 64}, {64, 100}}));
static_assert(are(plan::even_slices(20, 3), {{0, 0}, {0, 16}, {16, 20}}));
static_assert(are(plan::slices_at_rows(table, stored, 1), {{0, stored}}));
static_assert(are(plan::slices_at_rows(table, stored, 2), {{0, 336}, {336, stored}}));
static_assert(are(plan::slices_at_rows(table, stored, 3), {{0, 336}, {336, 976}, {976, stored}}));
static_assert(are(plan::slices_at_rows({}, 0, 2), {{0, 0}, {0, 0}}));
static_assert(plan::rows_within(table, {336, 976}) == plan::Range{2, 3} && plan::rows_within(table, {5, 5}) == plan::Range{1, 1});
static_assert(plan::Placement::replicated(7).part(5) == plan::Range{0, 7} && plan::Placement::replicated(7).owners() == 1);
static_assert(plan::Placement::sliced({{0, 3}, {3, 7}}, 1).own() == plan::Range{3, 7});
static_assert(plan::Placement::staged({{0, 336}, {336, stored}}).owners_of(table[2]) == plan::Range{1, 2});
static_assert(plan::Placement{}.own() == plan::Range{});

TEST_CASE("Slices are the arena, in order, each scalar once", "[plan]") {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const bool whole_rows : {false, true}) {
      CAPTURE(ranks, whole_rows);
      const std::vector<plan::Range> slices = plan::slices({table, stored, whole_rows}, ranks);
      REQUIRE(slices.size() == static_cast<std::size_t>(ranks));
      long at = 0;
      for (const plan::Range& r : slices) {
        CHECK(r.begin == at);
        CHECK(r.end >= r.begin);
        at = r.end;
      }
      CHECK(at == stored);
      const auto placement = plan::Placement::sliced(slices, 0);
      std::size_t sum = 0;
      for (const std::size_t n : placement.counts()) sum += n;
      CHECK(sum == static_cast<std::size_t>(stored));
      CHECK((!whole_rows || placement.keeps_whole(table)));
    }
}

TEST_CASE("Even slices cut rows: a row knows over whom", "[plan]") {
  const auto placement = plan::Placement::sliced(plan::even_slices(stored, 4), 0);
  CHECK_FALSE(placement.keeps_whole(table));
  CHECK(placement.owners_of(table[0]) == plan::Range{0, 2});
  CHECK(placement.owners_of(table[2]) == plan::Range{1, 4});
  CHECK(placement.owners_of(table[5]) == plan::Range{3, 4});
  const auto replicated = plan::Placement::replicated(stored);
  CHECK(replicated.keeps_whole(table));
}

TEST_CASE("No other slices at rows have a smaller largest one", "[plan]") {
  // All ways to put boundaries between the six rows.
  for (const int ranks : {1, 2, 3, 4, 7}) {
    long best = stored;
    for (unsigned cuts = 0; cuts < 32; ++cuts) {
      long largest = 0, sum = 0;
      int slices = 1;
      for (unsigned i = 0; i < 6; ++i) {
        sum += sizes[i];
        largest = std::max(largest, sum);
        if (i < 5 && (cuts >> i & 1u)) ++slices, sum = 0;
      }
      if (slices <= ranks) best = std::min(best, largest);
    }
    long largest = 0;
    for (const plan::Range& r : plan::slices_at_rows(table, stored, ranks)) largest = std::max(largest, r.end - r.begin);
    CHECK(largest == best);
  }
}

TEST_CASE("Ranks that keep nothing stand before the servers that do", "[plan]") {
  std::vector<plan::Range> parts(3);
  for (const plan::Range& r : plan::slices({table, stored, true}, 2)) parts.push_back(r);
  const auto worker = plan::Placement::sliced(parts, 1), server = plan::Placement::sliced(parts, 4);
  CHECK(worker.own() == plan::Range{});
  CHECK(server.own() == plan::Range{336, stored});
  CHECK(server.owners_of(table[0]) == plan::Range{3, 4});
  CHECK(server.counts() == std::vector<std::size_t>{0, 0, 0, 336, 693});
}
