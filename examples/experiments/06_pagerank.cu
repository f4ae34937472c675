// SPDX-License-Identifier: Apache-2.0
// 06_pagerank.cpp with a column for a GPU: the same versions, another device.
// ctest: --nodes 600 --iterations 60
// ctest expects: all versions agree
#include <skein/cuda.hpp>

#include "support/pagerank_program.hpp"

int main(int argc, char** argv) {
  return skein::run<experiments::PageRankOptions>(argc, argv, experiments::run_pagerank<skein::Cpu, skein::Cuda>);
}
