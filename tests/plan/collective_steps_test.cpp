// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/collective_check.hpp>

#include <catch2/catch.hpp>

using namespace skein::plan;

// Provable by the compiler.
static_assert(check(RingAllReduce{4, 8}).sound() && check(RingAllReduce{4, 8}).most_messages == 6 &&
              check(RingAllReduce{4, 8}).most_values == 12);
static_assert(check(RecursiveDoubling{5, 3}).sound());
static_assert(check(HalvingDoubling{8, 16}).sound() && check(HalvingDoubling{8, 16}).most_messages == 6 &&
              check(HalvingDoubling{8, 16}).most_values == 28 && check(HalvingDoubling{7, 5}).sound());
static_assert(check(TorusAllReduce{6, 12, 3}).sound() && check(TorusAllReduce{6, 12, 3}).most_messages == 2 * 2 + 2 * 1);
static_assert(check(HierarchicalAllReduce{6, 6, 4}).sound());
static_assert(square_columns(64) == 8 && square_columns(12) == 3 && square_columns(7) == 1);

TEST_CASE("every all-reduce table is sound, with the messages and values of its formula, for all sizes") {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (const long count : {0L, 1L, 3L, 16L, 37L}) {
      INFO(ranks << " ranks, " << count << " values");
      const long n = ranks;
      const CollectiveReport ring = check(RingAllReduce{ranks, count}), doubling = check(RecursiveDoubling{ranks, count});
      REQUIRE(ring.sound());
      REQUIRE(doubling.sound());
      CHECK(ring.values == 2 * (n - 1) * count);  // whether or not N divides n
      if (count >= n) CHECK(ring.messages == n * 2 * (n - 1));
      if (count > 0) {
        int log = 0;
        while ((2 << log) <= ranks) ++log;
        const long extra = n - (1 << log);
        CHECK(doubling.messages == (n - extra) * log + 2 * extra);
        CHECK(doubling.values == doubling.messages * count);
        const CollectiveReport halving = check(HalvingDoubling{ranks, count});
        REQUIRE(halving.sound());
        CHECK(halving.values == 2 * (n - extra - 1) * count + 2 * extra * count);
        if (count >= n) CHECK(halving.messages == (n - extra) * 2 * log + 2 * extra);
      }
      for (int columns = 1; columns <= ranks; ++columns)
        if (ranks % columns == 0) {
          INFO(columns << " columns");
          const TorusAllReduce table{ranks, count, columns};
          const CollectiveReport torus = check(table);
          REQUIRE(torus.sound());
          CHECK(torus.values == 2 * (n - 1) * count);
          if (count >= 2 * n) CHECK(torus.messages == n * (2 * (columns - 1) + 2 * (table.rows() - 1)));
        }
      for (int node = 1; node <= ranks + 1; ++node) {
        INFO("nodes of " << node);
        const HierarchicalAllReduce table{ranks, count, node};
        const CollectiveReport h = check(table);
        REQUIRE(h.sound());
        const long m = table.nodes();
        CHECK(h.values == 2 * (n - m) * count + 2 * (m - 1) * count);
        if (count >= n) CHECK(h.messages == 2 * (n - m) + m * 2 * (m - 1));
      }
    }
}

TEST_CASE("at 4,096 ranks the ring sends 2 (N - 1) messages a rank, from a table without memory") {
  const RingAllReduce ring{4096, 4096 * 10};
  CHECK(sent_by(ring, 0) == SentByRank{2 * 4095, 2 * 4095 * 10});
  CHECK(sent_by(ring, 4095) == SentByRank{2 * 4095, 2 * 4095 * 10});
  const TorusAllReduce torus{4096, 4096 * 10, square_columns(4096)};
  CHECK(sent_by(torus, 777) == SentByRank{4 * 63, 2 * 4095 * 10});
  CHECK(sent_by(RecursiveDoubling{4096, 100}, 5) == SentByRank{12, 1200});
}

namespace {
/// A ring with one wrong step, of each kind.
struct Broken : RingAllReduce {
  int how = 0;
  constexpr int steps() const { return RingAllReduce::steps() - (how == 2); }
  constexpr CollectiveStep at(int rank, int step) const {
    CollectiveStep s = RingAllReduce::at(rank, step);
    if (how == 0 && rank == 1 && step == 2) s.send.end = count + 1;
    if (how == 1 && rank == 1 && step == 2) s.from = -1;
    if (how == 3 && step == ranks - 1) s.adds = true;
    return s;
  }
};
Broken broken(int how) {
  Broken b;
  b.ranks = 4;
  b.count = 8;
  b.how = how;
  return b;
}
}  // namespace

TEST_CASE("what is wrong with an all-reduce table is named, with rank and step") {
  CHECK(check(broken(-1)).sound());
  CHECK(check(broken(0)).fault == CollectiveFault::no_such_range);
  CHECK(check(broken(0)).rank == 1);
  CHECK(check(broken(0)).step == 2);
  CHECK(check(broken(1)).fault == CollectiveFault::unmatched);
  CHECK(check(broken(1)).step == 2);
  CHECK(check(broken(2)).fault == CollectiveFault::missing);
  CHECK(check(broken(2)).step == -1);
  CHECK(check(broken(3)).fault == CollectiveFault::twice);
  CHECK_FALSE(sentence_of(check(broken(3)).fault).empty());
}
