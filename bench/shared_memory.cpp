// SPDX-License-Identifier: Apache-2.0
// How long does an all-reduce of floats take within a node: between two processes through shared memory, of foreign buffers and
// of gradients in shared pages (where DataParallel has them), against Open MPI's; and between two threads?
// OMPI_MCA_btl_vader_single_copy_mechanism=cma scripts/bench shared_memory gives the peer its kernel-assisted copies where the
// system allows them. Sums are checked before anything is timed.
// ranks: 2
#include <skein/mpi.hpp>

#include "support/ranks.hpp"

namespace {
using namespace bench;
using Floats = std::shared_ptr<std::vector<float>>;

template <class Comm> void check(Comm& comm, std::span<float> data) {
  std::fill(data.begin(), data.end(), static_cast<float>(comm.rank() + 1));
  comm.all_reduce(data);
  if (data.front() != 3 || data.back() != 3) throw std::runtime_error("shared_memory: the sum is wrong");
  std::fill(data.begin(), data.end(), 0.0f);  // sums of zeros stay what they are, however often
}
template <class Comm> std::vector<typename Ranks<Comm>::Work> works(Comm& comm, const std::vector<long>& sizes) {
  std::vector<typename Ranks<Comm>::Work> all;
  for (const long bytes : sizes) {
    const Floats data = std::make_shared<std::vector<float>>(static_cast<std::size_t>(bytes / 4));
    check<Comm>(comm, *data);
    all.push_back([&comm, data](long n) {
      while (n-- > 0) comm.all_reduce(*data);
    });
    if constexpr (Comm::name == "MpiComm") {
      const sk::comm::SharedPages pages = comm.share(static_cast<std::size_t>(bytes));
      if (!pages) throw std::runtime_error("shared_memory: there are no shared pages");
      check<Comm>(comm, pages.span<float>());
      all.push_back([&comm, pages](long n) {
        while (n-- > 0) comm.all_reduce(pages.span<float>());
      });
      all.push_back([data](long n) {
        while (n-- > 0)
          MPI_Allreduce(MPI_IN_PLACE, data->data(), static_cast<int>(data->size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
    }
  }
  return all;
}

void processes(Report& report, Ranks<sk::MpiComm>& ranks, const std::vector<long>& sizes, Plan plan) {
  constexpr const char* what[] = {"foreign buffers", "shared gradients"};
  for (std::size_t k = 0; k < 2 * sizes.size(); ++k) {
    const std::size_t i = k / 2;
    const int place = static_cast<int>(k % 2), ours = 3 * static_cast<int>(i) + place, peer = 3 * static_cast<int>(i) + 2;
    Line l{.metric = "all_reduce of " + size_in_words(sizes[i]) + ", 2 processes, " + what[place],
           .peer_name = "Open MPI",
           .unit = "us"};
    if (sizes[i] >= 64 * 1024) l.must = {0.50}, l.hope = {0.30};
    if (const std::string reason = void_reason(ranks.candidate(ours), plan); !reason.empty()) l.accepted = false, l.add(reason);
    const Comparison c = compare(ranks.candidate(ours), ranks.candidate(peer), plan);
    l.ours = 1e6 * c.a;
    l.peer = 1e6 * c.b;
    l.ratio = c.ratio;
    l.add(number(1e-9 * static_cast<double>(sizes[i]) / c.a) + " GB/s; least " + number(1e6 * c.least_a) + " against " +
          number(1e6 * c.least_b));
    report.add(l);
  }
}
void threads(Report& report, Ranks<sk::ThreadComm>& ranks, const std::vector<long>& sizes, Plan plan) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Comparison c = alone(ranks.candidate(static_cast<int>(i)), plan);
    Line l{.metric = "all_reduce of " + size_in_words(sizes[i]) + ", 2 threads", .ours = 1e6 * c.a, .unit = "us"};
    if (sizes[i] == 40000) l.must = {2.0};
    if (sizes[i] == 4000000) l.must = {200.0}, l.add("the must is 20 GB/s");
    l.add(number(1e-9 * static_cast<double>(sizes[i]) / c.a) + " GB/s; least " + number(1e6 * c.least_a));
    report.add(l);
  }
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  const Options o = options(argc, argv);
  if (world.size() != 2) return world.rank() == 0 ? (std::puts("shared_memory: start it on 2 ranks (scripts/bench does)"), 2) : 2;
  std::unique_ptr<Report> report;
  if (world.rank() == 0) report = std::make_unique<Report>("shared_memory", o);
  const std::vector<long> between{40000, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20},
      within_one{40000, 400000, 4000000, 16000000};
  const Plan plan{0.003, o.quick ? 40 : 100};
  lead(
      world, [&](sk::MpiComm& c) { return works(c, between); },
      [&](auto& ranks) {
        processes(*report, ranks, between, plan);
        lead_threads([&](sk::ThreadComm& c) { return works(c, within_one); },
                     [&](auto& team) { threads(*report, team, within_one, plan); });
      });
  return report ? report->finish() : 0;
}
