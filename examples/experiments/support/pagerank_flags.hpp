// SPDX-License-Identifier: Apache-2.0
// The flags of experiment 06. Apart from the program, so that tests of that need no parser.
#pragma once
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "pagerank_program.hpp"

namespace experiments {

/// Parses and runs; what is thrown becomes a line and status 2.
inline int pagerank_main(int argc, char** argv, int (*run)(const PageRankOptions&)) {
  PageRankOptions o;
  CLI::App app{"PageRank: messages, sparse, dense with the full product, dense scaled once"};
  app.add_option("--graph", o.graph, "list of edges, a line each: FROM TO (plain or gzip); default: a random graph");
  app.add_option("--out", o.out, "writes node,rank lines to this file");
  app.add_option("--iterations", o.iterations, "how many")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--nodes", o.nodes, "of the random graph")->check(CLI::Range(2L, 1'000'000L))->capture_default_str();
  app.add_option("--p", o.p, "probability of an edge of the random graph")->check(CLI::Range(0.0, 0.999))->capture_default_str();
  app.add_option("--damping", o.damping, "d")->check(CLI::Range(0.001, 0.999))->capture_default_str();
  app.add_option("--start", o.start, "ranks at the start: uniform (1 / nodes) or ones")->check(CLI::IsMember({"uniform", "ones"}))->capture_default_str();
  app.add_option("--threads", o.threads, "on the host; 0: the cores")->check(CLI::Range(0, 1024))->capture_default_str();
  app.add_option("--dense-limit", o.dense_limit, "the dense versions are left out for more nodes")->capture_default_str();
  app.add_option("--seed", o.seed, "of the random graph")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "06_pagerank: %s\n", e.what());
    return 2;
  }
}

}  // namespace experiments
