// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/alpha_beta.hpp>

#include <catch2/catch.hpp>

using namespace skein::plan;

namespace {
constexpr Network flat{.near = {2e-6, 1e-9}, .far = {9, 9}, .gamma = 1e-10};
constexpr Network cluster(int node) { return {.near = {1e-6, 1e-10}, .far = {2e-5, 1e-9}, .node = node, .gamma = 5e-11}; }
}  // namespace

// By hand: 2 * 3 messages of 250 values of 4 bytes, and 3 sums of them.
static_assert(ring_seconds(Network{.near = {1, 0.5}, .gamma = 0.25}, 4, 4000) == 2 * 3 * (1 + 500) + 3 * 250);
static_assert(recursive_doubling_seconds(Network{.near = {1, 0.5}}, 8, 10) == 3 * 6);
static_assert(recursive_doubling_seconds(Network{.near = {1, 0.5}}, 9, 10) == 5 * 6);

TEST_CASE("closed forms equal the play of the tables where pieces are equal") {
  for (int ranks = 1; ranks <= 24; ++ranks) {
    const long count = 2L * 5 * 7 * 9 * 11 * 13 * 16 * 17 * 19 * 23;  // divisible by all that the pieces ask for
    const double bytes = 4.0 * static_cast<double>(count);
    for (const Network& n : {flat, cluster(4), cluster(8), cluster(3)}) {
      INFO(ranks << " ranks, nodes of " << n.node);
      CHECK(ring_seconds(n, ranks, bytes) == Approx(played_seconds(RingAllReduce{ranks, count}, n, 4)));
      const int node = n.node ? n.node : ranks;
      CHECK(hierarchical_seconds(n, ranks, bytes) == Approx(played_seconds(HierarchicalAllReduce{ranks, count, node}, n, 4)));
      const double doubling = played_seconds(RecursiveDoubling{ranks, count}, n, 4);
      if ((ranks & (ranks - 1)) == 0 && (n.node & (n.node - 1)) == 0)
        CHECK(recursive_doubling_seconds(n, ranks, bytes) == Approx(doubling));
      else CHECK(recursive_doubling_seconds(n, ranks, bytes) >= doubling * (1 - 1e-12));
      for (int columns = 1; columns <= ranks; ++columns)
        if (ranks % columns == 0) {
          INFO(columns << " columns");
          const double torus = played_seconds(TorusAllReduce{ranks, count, columns}, n, 4);
          if (n.node == 0 || n.node % columns == 0) CHECK(torus_seconds(n, ranks, bytes, columns) == Approx(torus));
          else CHECK(torus_seconds(n, ranks, bytes, columns) >= torus * (1 - 1e-12));
        }
    }
  }
}

TEST_CASE("closed forms equal the play of the tables up to 4,096 ranks") {
  const long count = 1L << 20;
  const double bytes = 4.0 * static_cast<double>(count);
  for (const Network& n : {flat, cluster(8)})
    for (int ranks = 64; ranks <= 4096; ranks *= 4) {
      INFO(ranks << " ranks, nodes of " << n.node);
      if (ranks <= 1024 || n.node)
        CHECK(ring_seconds(n, ranks, bytes) == Approx(played_seconds(RingAllReduce{ranks, count}, n, 4)));
      CHECK(recursive_doubling_seconds(n, ranks, bytes) == Approx(played_seconds(RecursiveDoubling{ranks, count}, n, 4)));
      const int columns = torus_columns(n, ranks);
      CHECK(columns == (n.node ? 8 : square_columns(ranks)));
      CHECK(torus_seconds(n, ranks, bytes, columns) == Approx(played_seconds(TorusAllReduce{ranks, count, columns}, n, 4)));
      if (n.node)
        CHECK(hierarchical_seconds(n, ranks, bytes) == Approx(played_seconds(HierarchicalAllReduce{ranks, count, n.node}, n, 4)));
    }
}

TEST_CASE("pieces that are not equal cost nearly the same") {
  for (const int ranks : {3, 5, 6, 7}) {
    const long count = 10007;
    CHECK(ring_seconds(flat, ranks, 4.0 * count) == Approx(played_seconds(RingAllReduce{ranks, count}, flat, 4)).epsilon(0.01));
  }
}

TEST_CASE("the algorithm is chosen by size, and the choice is the cheapest") {
  // Short messages want few, long ones want little; between nodes only a piece should cross.
  CHECK(cheapest_all_reduce(flat, 16, 8).algorithm == AllReduceAlgorithm::recursive_doubling);
  CHECK(cheapest_all_reduce(flat, 13, 1e9).algorithm == AllReduceAlgorithm::ring);
  CHECK(cheapest_all_reduce(cluster(8), 64, 1e8).algorithm == AllReduceAlgorithm::torus);
  CHECK(cheapest_all_reduce(cluster(8), 64, 1e8).columns == 8);
  CHECK(cheapest_all_reduce(cluster(4), 7, 3e4).algorithm == AllReduceAlgorithm::hierarchical);
  CHECK(cheapest_all_reduce(flat, 1, 1e6).seconds == 0);
  CHECK(name_of(AllReduceAlgorithm::torus) == "torus");
  for (const Network& n : {flat, cluster(4)})
    for (const int ranks : {2, 7, 16, 64, 100, 4096})
      for (double bytes = 4; bytes < 1e10; bytes *= 10) {
        const AllReduceChoice c = cheapest_all_reduce(n, ranks, bytes);
        const double all[] = {ring_seconds(n, ranks, bytes), recursive_doubling_seconds(n, ranks, bytes),
                              torus_seconds(n, ranks, bytes, torus_columns(n, ranks)), hierarchical_seconds(n, ranks, bytes)};
        CHECK(c.seconds == *std::min_element(std::begin(all), std::end(all)));
        CHECK(all[static_cast<int>(c.algorithm)] == c.seconds);
        if (ranks <= 16) {
          const long count = static_cast<long>(bytes / 4) / 720720 * 720720;
          if (count == 0 || count > 1'000'000'000) continue;
          const auto again = cheapest_all_reduce(n, ranks, 4.0 * static_cast<double>(count));
          const double played = with_table(again, ranks, count, [&](const auto& table) { return played_seconds(table, n, 4); });
          CHECK(played <= again.seconds * (1 + 1e-9));
        }
      }
}
