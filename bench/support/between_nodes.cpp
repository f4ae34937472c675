// SPDX-License-Identifier: Apache-2.0
// The program of bench/between_nodes.py, one rank of it: all-reduces of floats in native order (within nodes of several ranks
// first, and flat), in the order of the ranks, by MPI's blocking call and by Hierarchical, in turns. Rank 0 prints an object a
// line: what, bytes, the seconds of each round (of the rank that took longest). Sums are checked before anything is timed.
#include <skein/mpi.hpp>
#include <skein/parallel.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
namespace sk = skein;

using Values = sk::Arena<float>;  // as gradients are

struct Candidate {
  std::string name;
  std::function<void(Values&)> sum;
};

sk::CommOptions ordered(sk::ReductionOrder order) {
  sk::CommOptions o;
  o.order = order;
  o.deadline = 60;
  return o;
}

void check(sk::MpiComm& world, const Candidate& c, std::size_t n) {
  Values data(n);
  std::fill_n(data.data(), n, static_cast<float>(world.rank() + 1));
  c.sum(data);
  const float wanted = static_cast<float>(world.size() * (world.size() + 1) / 2);
  if (data.data()[0] != wanted || data.data()[n - 1] != wanted)
    throw std::runtime_error("between_nodes: the sum of " + c.name + " is wrong");
}

/// One round: every candidate once, each round in another order.
void round(sk::MpiComm& world, const std::vector<Candidate>& all, Values& data, std::size_t turn,
           std::vector<std::vector<double>>& seconds) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t k = turn % 2 ? all.size() - 1 - (i + turn / 2) % all.size() : (i + turn / 2) % all.size();
    MPI_Barrier(world.native());
    const double begin = MPI_Wtime();
    all[k].sum(data);
    seconds[k].push_back(world.all_reduce(MPI_Wtime() - begin, sk::Max{}));
  }
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv, ordered(sk::ReductionOrder::ranks)};
  const double budget = argc > 1 ? std::atof(argv[1]) : 1.0;
  const std::size_t largest = argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : std::size_t{1} << 24;
  sk::MpiComm native{world.native(), ordered(sk::ReductionOrder::native)};
  Values other;
  std::vector<Candidate> all{
      {"native", [&](auto& d) { native.all_reduce(d); }},
      {"ranks", [&](auto& d) { world.all_reduce(d); }},
      {"MPI in place",
       [&](auto& d) { MPI_Allreduce(MPI_IN_PLACE, d.data(), static_cast<int>(d.size()), MPI_FLOAT, MPI_SUM, world.native()); }},
      {"MPI",
       [&](auto& d) {
         if (other.size() != d.size()) other = Values(d.size());
         MPI_Allreduce(d.data(), other.data(), static_cast<int>(d.size()), MPI_FLOAT, MPI_SUM, world.native());
         std::swap(d, other);
       }},
  };
  std::unique_ptr<sk::MpiComm> flat;
  std::unique_ptr<sk::Hierarchical<sk::MpiComm>> levels;
  if (native.node_size() > 1) {
    sk::CommOptions o = ordered(sk::ReductionOrder::native);
    o.level_bytes = ~std::size_t{0};
    flat = std::make_unique<sk::MpiComm>(world.native(), o);
    all.push_back({"flat", [&](auto& d) { flat->all_reduce(d); }});
    levels = std::make_unique<sk::Hierarchical<sk::MpiComm>>(native);
    all.push_back({"levels", [&](auto& d) { levels->all_reduce(d); }});
  }
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{1} << 24}) {
    if (bytes > largest) break;
    Values data(bytes / sizeof(float));
    for (const Candidate& c : all) check(world, c, data.size());
    std::vector<std::vector<double>> seconds(all.size());
    const double begin = MPI_Wtime();
    for (std::size_t turn = 0; turn < 400 && (turn < 4 || world.broadcast(MPI_Wtime() - begin < budget ? 1 : 0)); ++turn)
      round(world, all, data, turn, seconds);
    if (world.rank() != 0) continue;
    for (std::size_t k = 0; k < all.size(); ++k) {
      std::printf("{\"what\": \"%s\", \"bytes\": %zu, \"seconds\": [", all[k].name.c_str(), bytes);
      for (std::size_t i = 0; i < seconds[k].size(); ++i) std::printf("%s%.7g", i ? ", " : "", seconds[k][i]);
      std::printf("]}\n");
    }
    std::fflush(stdout);
  }
}
