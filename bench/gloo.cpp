// SPDX-License-Identifier: Apache-2.0
// How long does an all-reduce take between two processes of one machine over GlooComm, which needs no MPI, against MpiComm:
// through the same shared memory; and through gloo's connections, which are for several machines? Sums are checked before they
// are timed.
// ranks: 2
#include <skein/gloo.hpp>
#include <skein/mpi.hpp>

#include "support/ranks.hpp"

namespace {
using namespace bench;

template <class Comm> Ranks<sk::MpiComm>::Work work(Comm& comm, long bytes) {
  const auto data =
      std::make_shared<std::vector<float>>(static_cast<std::size_t>(bytes / 4), static_cast<float>(comm.rank() + 1));
  comm.all_reduce(*data);
  if (data->front() != 3 || data->back() != 3) throw std::runtime_error("gloo: the sum is wrong");
  std::fill(data->begin(), data->end(), 0.0f);  // sums of zeros stay what they are
  return [&comm, data](long n) {
    while (n-- > 0) comm.all_reduce(*data);
  };
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  const Options o = options(argc, argv);
  if (world.size() != 2) return world.rank() == 0 ? (std::puts("gloo: start it on 2 ranks (scripts/bench does)"), 2) : 2;
  sk::CommOptions connections;
  connections.shared_memory = false;
  sk::GlooComm memory{sk::ControlComm::over(world, 60)}, sockets{sk::ControlComm::over(world, 60), connections};
  std::unique_ptr<Report> report;
  if (world.rank() == 0) report = std::make_unique<Report>("gloo", o);
  const Plan plan{0.003, o.quick ? 40 : 100};
  constexpr std::pair<long, const char*> sizes[] = {{40000, "40 kB"}, {1000000, "1 MB"}, {16000000, "16 MB"}};
  lead(
      world,
      [&](sk::MpiComm& comm) {
        std::vector<Ranks<sk::MpiComm>::Work> all;
        for (const auto& [bytes, words] : sizes) {
          all.push_back(work(memory, bytes));
          all.push_back(work(sockets, bytes));
          all.push_back(work(comm, bytes));
        }
        return all;
      },
      [&](auto& ranks) {
        for (int k = 0; k < 6; ++k) {
          const int size = k / 2, peer = 3 * size + 2;
          Line l{.metric = std::string("all_reduce of ") + sizes[size].second + ", 2 processes, " +
                           (k % 2 == 0 ? "shared memory" : "connections"),
                 .peer_name = "MpiComm",
                 .unit = "us"};
          if (k % 2 == 0 && size == 1) l.must = {1.1};
          const Candidate ours = ranks.candidate(3 * size + k % 2);
          if (const std::string reason = void_reason(ours, plan); !reason.empty()) l.accepted = false, l.add(reason);
          const Comparison c = compare(ours, ranks.candidate(peer), plan);
          l.ours = 1e6 * c.a;
          l.peer = 1e6 * c.b;
          l.ratio = c.ratio;
          report->add(l);
        }
      });
  return report ? report->finish() : 0;
}
