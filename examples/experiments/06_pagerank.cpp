// SPDX-License-Identifier: Apache-2.0
// PageRank in four versions on a random graph, or on any list of edges: seconds beside the tutorial's, and that all versions
// agree. 06_pagerank.cu adds a column for a GPU.
// ctest: --nodes 600 --iterations 60
// ctest: --nodes 300 --p 0 --iterations 30 --start ones --threads 1
// ctest expects: all versions agree
#include "support/pagerank_program.hpp"

int main(int argc, char** argv) {
  return skein::run<experiments::PageRankOptions>(argc, argv, experiments::run_pagerank<skein::Cpu>);
}
