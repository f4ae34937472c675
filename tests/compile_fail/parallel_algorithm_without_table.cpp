// expect: Algorithm<A>: A names an all-reduce: Ring, RecursiveDoubling, Torus<Columns>, Nodes<Node>, BySize, or a type with table(ranks, count) that derives from parallel::AlgorithmBase
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/algorithm.hpp>

namespace sk = skein;

struct Star : sk::parallel::AlgorithmBase {
  static constexpr std::string_view name = "star";
#ifdef SKEIN_TWIN
  sk::plan::HierarchicalAllReduce table(int ranks, long count) const { return {ranks, count, ranks}; }
#endif
};

int main() {
  sk::SelfComm world;
  (void)sk::parallel::DataParallel{world, sk::parallel::Algorithm<Star>{}};
}
