// SPDX-License-Identifier: Apache-2.0
// What does it cost to synchronise in every step instead of never: two workers, the tutorial's 1-80-80-40-1, 500 samples each,
// over MPI processes and over threads of one process? (The tutorial: 3.75 times.)
// ranks: 2
#include <skein/mpi.hpp>

#include "support/ranks.hpp"

namespace {
using namespace bench;
using Loss = nn::Mse;
constexpr sk::optim::Sgd sgd{.lr = 0.01f};

/// Work 0: steps that synchronise; work 1: steps that never do.
template <class Comm> auto works(Comm& comm) {
  const auto samples = std::make_shared<Samples<FunctionFit, Loss>>(1000);
  const auto every = std::make_shared<Training<FunctionFit, Loss, sk::parallel::DataParallel<Comm>>>(
      *samples, sgd, 1, sk::parallel::DataParallel{comm}, comm.rank(), 2);
  const auto never =
      std::make_shared<Training<FunctionFit, Loss>>(*samples, sgd, 1, sk::parallel::SingleProcess{}, comm.rank(), 2);
  return std::vector<typename Ranks<Comm>::Work>{[samples, every](long n) {
                                                   while (n-- > 0) every->step();
                                                 },
                                                 [samples, never](long n) {
                                                   while (n-- > 0) never->step();
                                                 }};
}

template <class Comm> void measure(Report& report, Ranks<Comm>& ranks, Line l) {
  const Plan plan{report.quick() ? 0.003 : 0.005, report.quick() ? 40 : 200};
  if (const std::string reason = void_reason(ranks.candidate(1), plan); !reason.empty()) l.accepted = false, l.add(reason);
  const Comparison c = compare(ranks.candidate(0), ranks.candidate(1), plan);
  l.ours = 1e3 * c.a;
  l.peer = 1e3 * c.b;
  l.peer_name = "never";
  l.ratio = c.ratio;
  l.add("2 workers, a core each; least " + number(1e3 * c.least_a) + " against " + number(1e3 * c.least_b));
  report.add(l);
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  const Options o = options(argc, argv);
  if (world.size() != 2) return world.rank() == 0 ? (std::puts("synchronize: start it on 2 ranks (scripts/bench does)"), 2) : 2;
  std::unique_ptr<Report> report;
  if (world.rank() == 0) report = std::make_unique<Report>("synchronize", o);
  lead(
      world, [](sk::MpiComm& c) { return works(c); },
      [&](auto& ranks) {
        measure(*report, ranks, {.metric = "every step against never, MPI processes", .must = {1.10}, .hope = {1.05}});
        lead_threads([](sk::ThreadComm& c) { return works(c); },
                     [&](auto& threads) {
                       measure(*report, threads,
                               {.metric = "every step against never, threads", .must = {1.02}, .hope = {1.005}});
                     });
      });
  return report ? report->finish() : 0;
}
