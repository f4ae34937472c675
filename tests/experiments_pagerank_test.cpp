// SPDX-License-Identifier: Apache-2.0
// What experiment 06 is made of: lists of edges, hostile ones too, and PageRank in its versions, against NetworkX.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <map>
#include <string>
#include <sys/stat.h>

#include "../examples/experiments/support/pagerank.hpp"
#include "fixtures/pagerank.hpp"
#include "support/larger.hpp"
#include "support/temporary_folder.hpp"

namespace ex = experiments;
namespace sk = skein;

namespace {

std::string fault(const std::string& text) {
  try {
    ex::parse_edge_list(text, "graph.txt");
  } catch (const sk::FileError& e) { return e.what(); }
  return "no fault";
}

template <class Version>
sk::Tensor<float, 1> ranks_by(const ex::Links& links, long iterations, int threads = 2, float start = 0) {
  ex::PageRank<sk::Cpu, Version> p(links, 0.85, start);
  sk::Workers workers(threads);
  p.iterate(workers, iterations);
  return p.ranks();
}

/// Largest error over the largest of the expected.
double error(const ex::EdgeList& g, const sk::Tensor<float, 1>& ranks, const std::vector<std::pair<long, double>>& expected) {
  double worst = 0, most = 0;
  for (const auto& [name, rank] : expected) {
    const auto at = std::lower_bound(g.names.begin(), g.names.end(), name) - g.names.begin();
    most = std::max(most, rank);
    worst = support::larger(worst, static_cast<double>(ranks(at)) - rank);
  }
  return worst / most;
}

}  // namespace

TEST_CASE("experiments: a list of edges is read with comments, gaps, tabs, commas and CR LF", "[experiments]") {
  const ex::EdgeList g = ex::parse_edge_list("# FromNodeId ToNodeId\r\n30\t1412\r\n\r\n  7, 30 \n1412 30", "graph.txt");
  CHECK(g.names == std::vector<std::int64_t>{7, 30, 1412});
  CHECK(g.from == std::vector<std::int32_t>{1, 0, 2});
  CHECK(g.to == std::vector<std::int32_t>{2, 1, 1});
}

TEST_CASE("experiments: a fault in a list of edges is named by line and byte", "[experiments]") {
  const auto says = [](const std::string& text, const std::string& wanted) {
    INFO(text);
    CHECK_THAT(fault(text), Catch::Contains(wanted) && Catch::Contains("graph.txt"));
  };
  says("1 2\n3\n", "(byte 4): line 2: has one number; an edge is two numbers of nodes");
  says("1 2\r\nx 3", "(byte 5): line 2: \"x\" is no whole number");
  says("# c\n1 2.5", "line 2: \"2.5\" is no whole number");
  says("1 -2", "(byte 2): line 1: \"-2\" is negative");
  says("1 2 0.5", "line 1: \"0.5\" stands behind an edge (weights are not taken)");
  says("1 99999999999999999999", "line 1: \"99999999999999999999\" does not fit 64 bits");
  says("1 2\n\x01\xff 2", "line 2: \"??\" is no whole number");
  says("", "there is no edge in the file");
  says("# only\n# comments\n", "line 2, the last: there is no edge in the file");
  says("1 # 2", "\"#\" is no whole number");
  says(std::string("1\0 2", 4), "line 1: \"1?\" is no whole number");
  says(std::string(5000, 'a'), std::string(40, 'a') + "\" is no whole number");
  CHECK_THROWS_AS(ex::read_edge_list("/nowhere/graph.txt"), sk::FileError);
}

TEST_CASE("experiments: a file of edges is read up to the limit", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string path = folder / "graph.txt", text = "1 2\n2 3\n" + std::string((1 << 20) - 8, '\n');  // two pieces
  support::write_file(path, text.data(), text.size());
  for (const std::uint64_t limit : {std::uint64_t{text.size()}, ~std::uint64_t{0}})
    CHECK(ex::read_edge_list(path, limit).edges() == 2);
  CHECK_THROWS_WITH(ex::read_edge_list(path, text.size() - 1), Catch::Contains("is larger than the limit of 1048575 bytes"));
}

TEST_CASE("experiments: a random graph has its ring, both directions of a pair, and about p of the pairs", "[experiments]") {
  const long n = 500;
  const ex::EdgeList g = ex::random_graph(n, 0.05, sk::Seed{3});
  std::map<std::pair<int, int>, int> edges;
  for (long k = 0; k < g.edges(); ++k) ++edges[{g.from[static_cast<std::size_t>(k)], g.to[static_cast<std::size_t>(k)]}];
  for (int i = 0; i < n; ++i) CHECK(edges.count({i, (i + 1) % n}) == 1);
  long one_way = 0;
  for (const auto& [e, count] : edges) {
    REQUIRE((e.first != e.second && e.first >= 0 && e.first < n && e.second >= 0 && e.second < n));
    one_way += edges.count({e.second, e.first}) == 0;
  }
  CHECK(one_way <= n);  // only of the ring
  const double pairs = n * (n - 1) / 2.0, expected = 0.05 * pairs, deviation = std::sqrt(0.05 * 0.95 * pairs);
  CHECK(std::fabs(static_cast<double>(g.edges() - n) / 2 - expected) < 5 * deviation);
  CHECK(ex::random_graph(n, 0.05, sk::Seed{3}).to == g.to);
  CHECK(ex::random_graph(n, 0.05, sk::Seed{4}).to != g.to);
  for (const double p : {0.0, 1e-25, 1e-320}) CHECK(ex::random_graph(10, p, sk::Seed{3}).edges() == 10);
  CHECK_THROWS_WITH(ex::random_graph(1, 0.5, sk::Seed{}), Catch::Contains("the ring needs at least 2"));
  CHECK_THROWS_WITH(ex::random_graph(10, 1, sk::Seed{}), Catch::Contains("lies in [0, 1)"));
}

TEST_CASE("experiments: every version of PageRank gives NetworkX's ranks, dangling nodes and all", "[experiments]") {
  const ex::EdgeList g = ex::parse_edge_list(fixtures::small_graph, "small");
  const ex::Links links(g);
  REQUIRE(links.any_dangling);
  REQUIRE(links.in.entries() == g.edges() - 1);  // one was there twice
  const auto close = [&](const sk::Tensor<float, 1>& r) {
    CHECK(error(g, r, fixtures::small_ranks) < 1e-6);
    CHECK(std::fabs(sum(r) - 1) < 1e-6f);
  };
  for (const int threads : {1, 2, 3}) {
    close(ranks_by<ex::Messages<sk::Cpu>>(links, 150, threads));
    close(ranks_by<ex::Sparse<sk::Cpu, std::uint16_t>>(links, 150, threads));
    close(ranks_by<ex::Sparse<sk::Cpu>>(links, 150, threads));
    close(ranks_by<ex::Sliced<sk::Cpu>>(links, 150, threads));
    close(ranks_by<ex::DenseProduct<sk::Cpu>>(links, 150, threads));
    close(ranks_by<ex::DenseScaled<sk::Cpu>>(links, 150, threads));
  }
  CHECK(error(g, ranks_by<ex::Sparse<sk::Cpu>>(links, 2), fixtures::small_ranks) > 1e-3);  // the iterations do something
  CHECK_THROWS_WITH((ex::PageRank<sk::Cpu, ex::Sparse<sk::Cpu>>(links, 1.0)), Catch::Contains("between 0 and 1"));
}

TEST_CASE("experiments: the links of a node are counted where a float counts no further", "[experiments]") {
  const std::size_t many = (std::size_t{1} << 24) + 3;
  std::vector<std::int32_t> from(many, 1);
  from[7] = 0;
  CHECK(ex::out_degrees({from.data(), from.size()}, 3) == std::vector<std::int64_t>{1, (std::int64_t{1} << 24) + 2, 0});
}

TEST_CASE("experiments: PageRank that starts with ones ends, scaled, with the same ranks", "[experiments]") {
  const ex::Links links(ex::random_graph(200, 0.05, sk::Seed{1}));
  CHECK_FALSE(links.any_dangling);
  const auto a = ranks_by<ex::Sparse<sk::Cpu>>(links, 200, 2), b = ranks_by<ex::Messages<sk::Cpu>>(links, 200, 2, 1.f);
  CHECK(ex::apart(a, b) < 1e-6);
  CHECK(ex::apart(a, ranks_by<ex::Sparse<sk::Cpu>>(links, 1)) > 1e-6);
}

TEST_CASE("experiments: PageRank of published graphs is NetworkX's", "[experiments]") {
  const char* data = std::getenv("SKEIN_DATA");
  int found = 0;
  for (const fixtures::RankedGraph& graph : fixtures::ranked_graphs) {
    const std::string path = std::string(data ? data : ".") + "/graphs/" + graph.file;
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) continue;
    ++found;
    INFO(graph.file);
    const ex::EdgeList g = ex::read_edge_list(path);
    CHECK(g.nodes() == graph.nodes);
    const ex::Links links(g);
    CHECK(links.in.entries() == graph.edges);
    const sk::Tensor<float, 1> sparse = ranks_by<ex::Sparse<sk::Cpu>>(links, 120),
                               messages = ranks_by<ex::Messages<sk::Cpu>>(links, 120);
    CHECK(error(g, sparse, graph.greatest) < 1e-5);
    CHECK(error(g, messages, graph.greatest) < 1e-5);
    CHECK(ex::apart(sparse, messages) < 1e-5);
    double squares = 0;
    for (const float r : sparse) squares += static_cast<double>(r) * static_cast<double>(r);
    CHECK(std::fabs(squares / graph.squares - 1) < 1e-5);
  }
  if (found == 0) WARN("SKIPPED: no published graphs here; set SKEIN_DATA to a folder with graphs/wiki-Vote.txt and the like");
}
