// SPDX-License-Identifier: Apache-2.0
// What do the same bits on any number of ranks cost: a step of LeNet, batch 128, of Reproducible<8> against one of DataParallel:
// one rank of one thread and of two, and two ranks of a thread each? Timed only after their losses are found to be the same bits.
#include <skein/mpi.hpp>
#include <skein/parallel/data/reproducible.hpp>

#include "support/ranks.hpp"

namespace {
using namespace bench;
using Loss = nn::CrossEntropy;
using sk::parallel::DataParallel, sk::parallel::Reproducible;
constexpr sk::optim::Sgd sgd{.lr = 0.05f, .momentum = 0.9};
template <class... Option> using Of = Training<LeNet, Loss, sk::parallel::DataParallel<sk::ThreadComm, Option...>>;

void report_ratio(Report& report, const Candidate& ours, const Candidate& plain, Line l, bool right) {
  const Plan plan{report.quick() ? 0.006 : 0.015, report.quick() ? 40 : 150};
  if (!right) l.accepted = false, l.add("the losses of one rank and thread are other bits");
  if (const std::string reason = void_reason(plain, plan); !reason.empty()) l.accepted = false, l.add(reason);
  const Comparison c = compare(ours, plain, plan);
  l.ours = 1e3 * c.a;
  l.peer = 1e3 * c.b;
  l.peer_name = "DataParallel";
  l.ratio = c.ratio;
  l.add("least " + number(1e3 * c.least_a) + " against " + number(1e3 * c.least_b));
  report.add(l);
}

/// Work 0: reproducible steps; work 1: those of DataParallel; this rank's share of the batch.
std::vector<Ranks<sk::ThreadComm>::Work> works(sk::ThreadComm& comm, const std::vector<double>& bits, bool* right) {
  const auto samples = std::make_shared<Samples<LeNet, Loss>>(128);
  const auto same =
      std::make_shared<Of<Reproducible<8>>>(*samples, sgd, 1, DataParallel{comm, Reproducible<8>{}}, comm.rank(), 2);
  const auto plain = std::make_shared<Of<>>(*samples, sgd, 1, sk::parallel::DataParallel{comm}, comm.rank(), 2);
  const bool mine = same->losses(20) == bits;
  if (comm.rank() == 0) *right = mine;
  return {[samples, same](long n) {
            while (n-- > 0) same->step();
          },
          [samples, plain](long n) {
            while (n-- > 0) plain->step();
          }};
}
}  // namespace

int main(int argc, char** argv) {
  Report report("reproducible", options(argc, argv));
  const Samples<LeNet, Loss> samples(128);
  std::vector<double> bits;
  sk::spawn(1, [&](sk::ThreadComm& comm) {
    for (int threads : {1, 2}) {
      Of<Reproducible<8>> same(samples, sgd, threads, DataParallel{comm, Reproducible<8>{}});
      Of<> plain(samples, sgd, threads, sk::parallel::DataParallel{comm});
      if (threads == 1) bits = same.losses(20);
      report_ratio(
          report, [&](long n) { return same.run(n); }, [&](long n) { return plain.run(n); },
          {.metric = "LeNet, batch 128, 1 rank, V = 8", .must = {1.10}, .hope = {1.05}, .threads = threads},
          same.losses(20) == bits);
    }
  });
  bool right = false;
  const Line two{.metric = "LeNet, batch 2 x 64, 2 ranks that are threads, V = 8", .must = {1.10}, .hope = {1.05}};
  lead_threads([&](sk::ThreadComm& comm) { return works(comm, bits, &right); },
               [&](auto& ranks) { report_ratio(report, ranks.candidate(0), ranks.candidate(1), two, right); });
  return report.finish(right);
}
