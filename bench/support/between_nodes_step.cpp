// SPDX-License-Identifier: Apache-2.0
// The other program of bench/between_nodes.py, one rank of it: a training of 784-512-512-10 by DataParallel in native order, in
// the order of the ranks, and over two levels where a node has several ranks, in turns. Rank 0 prints an object a line: what, the
// exposed seconds a step of each turn, and its seconds a step.
#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {
namespace sk = skein;
namespace nn = skein::nn;
using Net = nn::Sequential<nn::Linear<512>, nn::Relu, nn::Linear<512>, nn::Relu, nn::Linear<10>>;

constexpr long batch = 64, steps = 8;  // of a rank; of a turn

auto samples(long n) {
  std::vector<float> x(static_cast<std::size_t>(n) * 784);
  std::vector<std::int32_t> y(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(3, 0, i);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>(i % 10);
  return sk::data::InMemory<float>({1, {784}}, std::move(x), std::move(y), 10);
}

/// {exposed seconds a step, seconds a step} of one turn.
template <class Comm> std::pair<double, double> turn(Comm& comm) {
  const auto data = samples(batch * steps * comm.size());
  sk::Model<Net, sk::Shape<784>> model{sk::Seed{5}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.001f}, sk::parallel::DataParallel{comm}};
  const sk::History history = trainer.fit(data, {.epochs = 2, .batch = batch * comm.size(), .progress = false, .threads = 1});
  const auto& last = history.epochs().back();
  return {last.exposed_communication * last.seconds / steps, last.seconds / steps};
}

void print(const std::string& what, const std::vector<std::pair<double, double>>& turns) {
  std::printf("{\"what\": \"%s\"", what.c_str());
  for (const auto& [name, first] : {std::pair{"exposed", true}, std::pair{"seconds", false}}) {
    std::printf(", \"%s\": [", name);
    for (std::size_t i = 0; i < turns.size(); ++i) std::printf("%s%.7g", i ? ", " : "", first ? turns[i].first : turns[i].second);
    std::printf("]");
  }
  std::printf("}\n");
  std::fflush(stdout);
}
}  // namespace

int main(int argc, char** argv) {
  sk::CommOptions ordered;
  ordered.order = sk::ReductionOrder::ranks;
  sk::MpiComm ranks{argc, argv, ordered};
  ordered.order = sk::ReductionOrder::native;
  sk::MpiComm native{ranks.native(), ordered};
  std::vector<std::pair<double, double>> in_native, in_ranks;
  for (int i = 0; i < (argc > 1 ? std::atoi(argv[1]) : 6); ++i) {
    in_native.push_back(turn(native));
    in_ranks.push_back(turn(ranks));
  }
  if (ranks.rank() != 0) return 0;
  print("native", in_native);
  print("ranks", in_ranks);
}
