// SPDX-License-Identifier: Apache-2.0
// The program of experiment 06, for the devices that it is compiled for: a column of the table each.
#pragma once
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <optional>
#include <string>
#include <vector>

#include <skein/core/run.hpp>

#include "output_files.hpp"
#include "pagerank.hpp"

namespace experiments {

/// What the flags say.
struct PageRankOptions {
  std::string graph, out, start = "uniform";
  long nodes = 10'000, dense_limit = 20'000;
  double p = 0.05, damping = 0.85;
  int iterations = 200, threads = 0;
  std::uint64_t seed = 1;

  void flags(sk::Flags& f) {
    f.about(
        "PageRank of a graph. A file is a list of edges, a line each: FROM TO, plain or gzip; without it the graph is random.");
    f("graph", graph, "file of edges");
    f("out", out, "writes the ranks to this .csv");
    f("iterations", iterations, "of each version").within(1, 1'000'000);
    f("nodes", nodes, "of the random graph").within(2, 1'000'000);
    f("p", p, "share of the pairs of nodes that it links").within(0, 0.999);
    f("damping", damping, "share of the walks that go on").within(0.001, 0.999);
    f("start", start, "of the iterations").one_of({"uniform", "ones"});
    f("threads", threads, "0: the cores").within(0, 1024);
    f("dense-limit", dense_limit, "no dense versions of graphs with more nodes").within(0, 1'000'000);
    f("seed", seed, "of the random graph");
  }
};

/// A version on one device: seconds of all iterations, and how far its ranks are from the first version's.
template <class Device, template <class> class Version> void measure(const Links& links, const PageRankOptions& o,
                                                                     std::optional<sk::Tensor<float, 1>>& reference,
                                                                     std::string& cells, double& worst) {
  if constexpr (!requires { sizeof(Version<Device>); }) {  // not for this device
    cells += "           -         -";
  } else {
    PageRank<Device, Version<Device>> ranks(links, o.damping, o.start == "ones" ? 1.f : 0.f);
    const bool host = std::is_same_v<Device, sk::Cpu>;
    sk::Workers workers(host ? o.threads : 1);
    const auto begin = std::chrono::steady_clock::now();
    ranks.iterate(workers, o.iterations);
    sk::Tensor<float, 1> x = ranks.ranks();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double difference = reference ? apart(*reference, x) : 0;
    if (!reference) reference = std::move(x);
    worst = std::max(worst, difference);
    char text[64];
    std::snprintf(text, sizeof text, " %11.4f %9.1e", seconds, difference);
    cells += text;
  }
}

template <class Device> using NarrowSparse = Sparse<Device, std::uint16_t>;
template <class Device> using WideSparse = Sparse<Device, std::int32_t>;

/// One row of the table.
template <template <class> class Version, class... Devices>
void row(const char* name, const char* cpu, const char* gpu, const Links& links, const PageRankOptions& o,
         std::optional<sk::Tensor<float, 1>>& reference, double& worst) {
  std::string cells;
  (measure<Devices, Version>(links, o, reference, cells, worst), ...);
  std::printf("%-30s%s %9s %9s\n", name, cells.c_str(), cpu, gpu);
  std::fflush(stdout);
}

template <class... Devices> int run_pagerank(const PageRankOptions& o) {
  check_outputs({.out = o.out});
  const EdgeList g = o.graph.empty() ? random_graph(o.nodes, o.p, sk::Seed{o.seed}) : read_edge_list(o.graph);
  const Links links(g);
  long dangling = 0;
  for (const float d : links.dangling) dangling += d > 0;
  std::printf("%s: %ld nodes, %ld edges, %ld of the nodes dangling; %d iterations, damping %g, %d threads\n",
              o.graph.empty() ? "random graph" : o.graph.c_str(), links.nodes(), links.in.entries(), dangling, o.iterations,
              o.damping, o.threads > 0 ? o.threads : sk::Workers::default_count());
  // The tutorial's figures are of its own graph: they stand beside ours only there.
  const bool same = o.graph.empty() && o.nodes == 10'000 && o.p == 0.05 && o.iterations == 200;
  const auto theirs = [&](const char* seconds) { return same ? seconds : "-"; };
  std::string heads;
  ((heads += "     " + std::string(Devices::name) + " (s)   differs"), ...);
  std::printf("%-30s%s  tutorial: CPU, one K80\n", "version", heads.c_str());

  std::optional<sk::Tensor<float, 1>> reference;
  double worst = 0;
  row<Messages, Devices...>("messages, node by node", theirs("8.78"), theirs("2.14"), links, o, reference, worst);
  if (links.nodes() <= 65'536)
    row<NarrowSparse, Devices...>("sparse, 16-bit columns", theirs("26.4"), theirs("8.01"), links, o, reference, worst);
  row<WideSparse, Devices...>("sparse, 32-bit columns", theirs("26.4"), theirs("8.01"), links, o, reference, worst);
  row<Sliced, Devices...>("sparse, in tiles", theirs("26.4"), theirs("8.01"), links, o, reference, worst);
  if (links.nodes() <= o.dense_limit) {
    row<DenseProduct, Devices...>("dense, full product", theirs("6.99"), theirs("0.072"), links, o, reference, worst);
    row<DenseScaled, Devices...>("dense, scaled once", theirs("20.1"), theirs("0.071"), links, o, reference, worst);
  } else {
    std::printf("%-30s more than %ld nodes: left out (--dense-limit)\n", "dense", o.dense_limit);
  }
  if (!o.out.empty()) {
    std::ofstream file(o.out);
    file << "node,rank\n" << std::setprecision(9);
    for (long i = 0; i < links.nodes(); ++i) file << g.names[static_cast<std::size_t>(i)] << ',' << (*reference)(i) << '\n';
    if (!file.flush()) throw sk::FileError(o.out, -1, "could not be written");
    std::printf("ranks are in %s\n", o.out.c_str());
  }
  const bool agree = worst <= 1e-5;
  std::printf("%s (L2-normalised, largest difference %.1e of the largest rank)\n",
              agree ? "all versions agree" : "versions DIFFER", worst);
  return agree ? 0 : 1;
}

}  // namespace experiments
