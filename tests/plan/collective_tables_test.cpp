// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/collective_tables.hpp>

#include <catch2/catch.hpp>

#include <skein/plan/collective_check.hpp>

using namespace skein::plan;

namespace {
constexpr Level wire{2, 0.5};
/// Leaves of all ranks, from equal or given times of arrival. Values of one byte.
template <class Table> std::vector<double> played(const Table& table, std::vector<double> ready) {
  play_from(
      table, ready, [](int, int, long values, int) { return wire.alpha + wire.beta * static_cast<double>(values); },
      [](long) { return 0.0; });
  return ready;
}
template <class Table> double longest(const Table& table) {
  const auto left = played(table, std::vector<double>(static_cast<std::size_t>(table.ranks), 0.0));
  return *std::max_element(left.begin(), left.end());
}
/// What each rank ends with where values are sets of ranks.
template <class Table>
std::vector<std::vector<unsigned long>> ends(const Table& table, const std::vector<std::vector<unsigned long>>& begin) {
  std::vector<std::vector<unsigned long>> now = begin;
  for (int s = 0; s < table.steps(); ++s) {
    const auto before = now;
    for (int r = 0; r < table.ranks; ++r) {
      const CollectiveStep step = table.at(r, s);
      if (step.to >= 0) {
        const CollectiveStep other = table.at(step.to, s);
        REQUIRE(other.from == r);
        REQUIRE(other.receive == step.send);
      }
      if (step.from < 0) continue;
      REQUIRE(table.at(step.from, s).to == r);
      for (long i = step.receive.begin; i < step.receive.end; ++i) {
        unsigned long& mine = now[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)];
        const unsigned long theirs = before[static_cast<std::size_t>(step.from)][static_cast<std::size_t>(i)];
        if (step.adds) REQUIRE((mine & theirs) == 0);  // nobody counts twice
        mine = step.adds ? mine | theirs : theirs;
      }
    }
  }
  return now;
}
template <class Table> std::vector<std::vector<unsigned long>> own(const Table& t) {
  std::vector<std::vector<unsigned long>> v;
  for (int r = 0; r < t.ranks; ++r) v.emplace_back(static_cast<std::size_t>(t.count), 1ul << r);
  return v;
}
}  // namespace

TEST_CASE("trees bring root's values to all, and all values to root") {
  for (int ranks = 1; ranks <= 20; ++ranks)
    for (int root = 0; root < ranks; root += 3) {
      const BinomialBroadcast down{ranks, 2, root};
      long messages = 0;
      for (const auto& v : ends(down, own(down)))
        for (const unsigned long x : v) CHECK(x == 1ul << root);
      const BinomialReduce up{ranks, 2, root};
      const auto all = ends(up, own(up));
      for (const unsigned long x : all[static_cast<std::size_t>(root)]) CHECK(x == (1ul << ranks) - 1);
      for (int r = 0; r < ranks; ++r) messages += sent_by(down, r).messages;
      CHECK(messages == ranks - 1);
      int log = 0;
      while (1 << log < ranks) ++log;
      CHECK(longest(down) == log * (2 + 1));
      CHECK(longest(up) == log * (2 + 1));
    }
}

TEST_CASE("the ring's halves and the exchange of pairs: who has what, and closed forms") {
  for (int ranks = 1; ranks <= 12; ++ranks) {
    const RingReduceScatter scatter{ranks, 3L * ranks};
    const auto pieces = ends(scatter, own(scatter));
    for (int r = 0; r < ranks; ++r)
      for (long i = 3L * r; i < 3L * (r + 1); ++i)
        CHECK(pieces[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)] == (1ul << ranks) - 1);
    CHECK(longest(scatter) == (ranks - 1) * (2 + 1.5));
    CHECK(longest(RingAllGather{ranks, 3L * ranks}) == (ranks - 1) * (2 + 1.5));
    const PairwiseExchange pairs{ranks, 3L * ranks};
    CHECK(longest(pairs) == (ranks - 1) * (2 + 1.5));
    CHECK(sent_by(pairs, ranks / 2).messages == ranks - 1);
    int log = 0;
    while (1 << log < ranks) ++log;
    CHECK(longest(DisseminationBarrier{ranks, 0}) == log * 2);
  }
}

TEST_CASE("from equal times of arrival the play is that of alpha_beta.hpp; a late rank delays all") {
  const Network n{.near = wire, .gamma = 0};
  for (const int ranks : {2, 3, 8}) {
    const RingAllReduce ring{ranks, 240};
    CHECK(longest(ring) == Approx(played_seconds(ring, n, 1)));
    std::vector<double> ready(static_cast<std::size_t>(ranks), 0.0);
    ready[1] = 100;
    for (const double left : played(ring, ready)) CHECK(left >= 100);
    const auto left = played(ring, ready);
    CHECK(*std::max_element(left.begin(), left.end()) == Approx(100 + longest(ring)));
  }
}
