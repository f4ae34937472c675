// SPDX-License-Identifier: Apache-2.0
// How much faster are two ranks of one core each than one: LeNet, global batch 128, over MPI processes and over threads of one
// process? Efficiency: time of one rank over twice the time of two. (A paper in PyTorch: 0.92.) Beside it what two ranks reach
// that train alone at the same time, and talk to nobody: that is the machine's part of it.
// ranks: 2
#include <skein/mpi.hpp>

#include "support/ranks.hpp"

namespace {
using namespace bench;
using Loss = nn::CrossEntropy;
constexpr sk::optim::Sgd sgd{.lr = 0.05f, .momentum = 0.9};

/// Work 0: the whole batch on rank 0, while rank 1 waits in a barrier; work 1: half the batch each; work 2: the whole batch on
/// each rank, alone.
template <class Comm> auto works(Comm& comm, std::string* wrong) {
  const auto samples = std::make_shared<Samples<LeNet, Loss>>(128);
  const auto two = std::make_shared<Training<LeNet, Loss, sk::parallel::DataParallel<Comm>>>(
      *samples, sgd, 1, sk::parallel::DataParallel{comm}, comm.rank(), 2);
  const auto one = std::make_shared<Training<LeNet, Loss>>(*samples, sgd, 1);
  const std::vector<double> losses = two->losses(20);
  if (wrong) *wrong = difference(losses, one->losses(20));
  return std::vector<typename Ranks<Comm>::Work>{[samples, one, first = comm.rank() == 0](long n) {
                                                   while (first && n-- > 0) one->step();
                                                 },
                                                 [samples, two](long n) {
                                                   while (n-- > 0) two->step();
                                                 },
                                                 [samples, one](long n) {
                                                   while (n-- > 0) one->step();
                                                 }};
}

template <class Comm> void measure(Report& report, Ranks<Comm>& ranks, Line l, const std::string& wrong) {
  const Plan plan{report.quick() ? 0.008 : 0.015, report.quick() ? 40 : 150};
  if (!wrong.empty()) l.accepted = false, l.add(wrong);
  if (const std::string reason = void_reason(ranks.candidate(1), plan); !reason.empty()) l.accepted = false, l.add(reason);
  const Comparison c = compare(ranks.candidate(0), ranks.candidate(1), plan);
  l.ours = 1e3 * c.b;
  l.peer = 1e3 * c.a;
  l.peer_name = "1 rank";
  l.ratio = Interval{c.ratio.median / 2, c.ratio.low / 2, c.ratio.high / 2};
  l.speedup = c.ratio.median;
  l.twice = 2 * compare(ranks.candidate(0), ranks.candidate(2), plan).ratio.median;
  l.add("the ratio is the efficiency; least " + number(1e3 * c.least_a) + " on one, " + number(1e3 * c.least_b) + " on two");
  report.add(l);
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  const Options o = options(argc, argv);
  if (world.size() != 2) return world.rank() == 0 ? (std::puts("rank_scaling: start it on 2 ranks (scripts/bench does)"), 2) : 2;
  std::unique_ptr<Report> report;
  if (world.rank() == 0) report = std::make_unique<Report>("rank_scaling", o);
  std::string wrong;
  bool right = true;
  lead(
      world, [&](sk::MpiComm& c) { return works(c, c.rank() == 0 ? &wrong : nullptr); },
      [&](auto& ranks) {
        measure(*report, ranks,
                {.metric = "LeNet, global batch 128, 2 MPI processes", .must = {0.93, {}, true}, .hope = {0.96, {}, true}},
                wrong);
        right &= wrong.empty();
        lead_threads([&](sk::ThreadComm& c) { return works(c, c.rank() == 0 ? &wrong : nullptr); },
                     [&](auto& threads) {
                       measure(
                           *report, threads,
                           {.metric = "LeNet, global batch 128, 2 threads", .must = {0.93, {}, true}, .hope = {0.96, {}, true}},
                           wrong);
                       right &= wrong.empty();
                     });
      });
  return report ? report->finish(right) : 0;
}
