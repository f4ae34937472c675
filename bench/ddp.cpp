// SPDX-License-Identifier: Apache-2.0
// How long does a step of two processes of one core each take, against PyTorch's DistributedDataParallel over gloo: the
// tutorial's 1-80-80-40-1 with 500 samples each, LeNet with 64 each?
// ranks: 2
#include <skein/mpi.hpp>

#include "support/ranks.hpp"

namespace {
using namespace bench;

template <class Network, class Loss>
bool step(Report* report, sk::MpiComm& world, Line l, long batch, sk::optim::Sgd sgd, bool quick) {
  const Samples<Network, Loss> samples(batch);
  std::unique_ptr<Training<Network, Loss, sk::parallel::DataParallel<sk::MpiComm>>> training;
  std::vector<double> losses;
  bool right = true;
  auto works = [&](sk::MpiComm& comm) {
    training = std::make_unique<Training<Network, Loss, sk::parallel::DataParallel<sk::MpiComm>>>(
        samples, sgd, 1, sk::parallel::DataParallel{comm}, comm.rank(), 2);
    return std::vector<Ranks<sk::MpiComm>::Work>{[&](long n) {
                                                   while (n-- > 0) training->step();
                                                 },
                                                 [&](long k) {
                                                   if (k > 1) losses = training->losses(static_cast<int>(k));
                                                 }};
  };
  lead(world, works, [&](Ranks<sk::MpiComm>& ranks) {
    const Exchange exchange;
    const bool images = ModelOf<Network>::input::rank == 3;
    std::vector<PeerVariant> tried;
    for (const char* option : {"--bind", "--free"})
      for (bool last : {true, false})
        if (last ? images : !(quick && images)) tried.push_back({.threads = 1, .channels_last = last, .option = option});
    const auto peer = best_peer("ddp.py", hand_over(exchange, samples, ModelOf<Network>{sk::Seed{7}}, sgd), tried, quick);
    ranks.run(1, 20);
    const std::string wrong = peer ? difference(losses, peer->losses(20)) : "";
    right = against(l, ranks.candidate(0), peer.get(), wrong, quick);
    l.add("2 processes of a core each");
    report->add(l);
  });
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  const Options o = options(argc, argv);
  if (world.size() != 2) return world.rank() == 0 ? (std::puts("ddp: start it on 2 ranks (scripts/bench does)"), 2) : 2;
  std::unique_ptr<Report> report;
  if (world.rank() == 0) report = std::make_unique<Report>("ddp", o);
  bool right =
      step<FunctionFit, nn::Mse>(report.get(), world, {.metric = "1-80-80-40-1, batch 2 x 500", .must = {0.30}, .hope = {0.20}},
                                 1000, {.lr = 0.01f}, o.quick);
  right &= step<LeNet, nn::CrossEntropy>(report.get(), world, {.metric = "LeNet, batch 2 x 64", .must = {0.20}, .hope = {0.12}},
                                         128, {.lr = 0.05f, .momentum = 0.9}, o.quick);
  return report ? report->finish(right) : 0;
}
