// SPDX-License-Identifier: Apache-2.0
// All-reduce of floats within a node: between two processes through shared memory against MPI_Allreduce, and between two threads.
// Paired slices in ABBA order, median of the ratios with a bootstrap interval; sums are checked before anything is timed.
// OMPI_MCA_btl_vader_single_copy_mechanism=cma gives the peer its kernel-assisted copies where the system allows them.
// ranks: 2
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "skein/mpi.hpp"

namespace sk = skein;

namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Interval { double median, low, high; };
Interval bootstrap(std::vector<double> x) {
  std::mt19937 random(1);
  std::vector<double> medians, draw(x.size());
  const auto middle = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  for (int k = 0; k < 1000; ++k) {
    for (double& d : draw) d = x[random() % x.size()];
    medians.push_back(middle(draw));
  }
  std::sort(medians.begin(), medians.end());
  return {middle(x), medians[25], medians[975]};
}

void check(bool right) {
  if (right) return;
  std::fprintf(stderr, "shared_memory: the sum is wrong\n");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Report {
  FILE* json = nullptr;
  void line(const char* metric, const char* peer_name, const char* unit, double ours, double peer, Interval r, double must,
            double hope, bool holds) const {
    if (!json) return;
    std::fprintf(json,
                 "{\"bench\": \"shared_memory\", \"metric\": \"%s\", \"ours\": %.4g, \"peer\": %.4g, \"peer_name\": \"%s\", "
                 "\"unit\": \"%s\", "
                 "\"ratio\": %.4g, \"low\": %.4g, \"high\": %.4g, \"floor\": null, \"of_floor\": null, \"must\": %g, \"hope\": "
                 "%g, \"holds\": %s, "
                 "\"threads\": 2, \"isa\": \"\", \"note\": \"%d ranks\"}\n",
                 metric, ours, peer, peer_name, unit, r.median, r.low, r.high, must, hope, holds ? "true" : "false", 2);
  }
};

void processes(sk::MpiComm& world, int rounds, const Report& report) {
  if (world.rank() == 0)
    std::printf(
        "between processes        ours us   GB/s   Open MPI us   ratio (95 %%)          best/best  must 0.50, hope 0.30\n");
  for (const std::size_t bytes : {std::size_t{40000}, std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20,
                                  std::size_t{4} << 20, std::size_t{16} << 20}) {
    std::vector<float> a(bytes / 4, static_cast<float>(world.rank() + 1)), b(a);
    world.all_reduce(a);
    MPI_Allreduce(MPI_IN_PLACE, b.data(), static_cast<int>(b.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    check(a == b && a[0] == static_cast<float>(world.size() * (world.size() + 1)) / 2);
    std::fill(a.begin(), a.end(), 0.0f);
    std::fill(b.begin(), b.end(), 0.0f);
    const int repeats = std::clamp(static_cast<int>(2e-3 / (static_cast<double>(bytes) / 4e9)), 1, 200);
    double best[2] = {1e9, 1e9};
    std::vector<double> ratios;
    for (int k = 0; k < rounds; ++k) {
      double time[2] = {0, 0};
      for (int half = 0; half < 2; ++half) {
        const int which = (half ^ k) & 1;
        MPI_Barrier(MPI_COMM_WORLD);
        world.barrier();
        const double start = now();
        for (int i = 0; i < repeats; ++i) {
          if (which == 0) world.all_reduce(a);
          else MPI_Allreduce(MPI_IN_PLACE, b.data(), static_cast<int>(b.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
        time[which] = world.all_reduce((now() - start) / repeats, sk::Max{});
        best[which] = std::min(best[which], time[which]);
      }
      ratios.push_back(time[0] / time[1]);
    }
    if (world.rank() != 0) continue;
    const Interval r = bootstrap(ratios);
    std::printf("  %9zu bytes   %12.2f %6.1f %13.2f   %.2f [%.2f, %.2f]      %.2f\n", bytes, best[0] * 1e6,
                static_cast<double>(bytes) / best[0] / 1e9, best[1] * 1e6, r.median, r.low, r.high, best[0] / best[1]);
    report.line(("processes " + std::to_string(bytes) + " bytes").c_str(), "Open MPI", "us", best[0] * 1e6, best[1] * 1e6, r, 0.5,
                0.3, r.high <= 0.5);
  }
}

void threads(int rounds, const Report& report) {
  cpu_set_t all;                                         // mpirun bound this process to one core
  CPU_ZERO(&all);
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
  std::printf("between threads           best us   GB/s   median us\n");
  for (const std::size_t bytes : {std::size_t{40000}, std::size_t{400000}, std::size_t{4000000}, std::size_t{16000000}}) {
    sk::spawn(2, [&](sk::ThreadComm& world) {
      std::vector<float> data(bytes / 4, 1.0f);
      world.all_reduce(data);
      check(data[0] == 2.0f && data.back() == 2.0f);
      std::fill(data.begin(), data.end(), 0.0f);
      const int repeats = std::clamp(static_cast<int>(2e-3 / (static_cast<double>(bytes) / 20e9)), 1, 500);
      std::vector<double> times;
      for (int k = 0; k < rounds; ++k) {
        world.barrier();
        const double start = now();
        for (int i = 0; i < repeats; ++i) world.all_reduce(data);
        times.push_back((now() - start) / repeats);
      }
      if (world.rank() != 0) return;
      std::sort(times.begin(), times.end());
      const double best = times[0], rate = static_cast<double>(bytes) / best / 1e9;
      std::printf("  %9zu bytes   %12.2f %6.1f %11.2f\n", bytes, best * 1e6, rate, times[times.size() / 2] * 1e6);
      if (bytes == 40000)
        report.line("threads 40 kB", "must 2 us", "us", best * 1e6, 2, {best * 5e5, best * 5e5, best * 5e5}, 1, 1, best <= 2e-6);
      if (bytes == 4000000)
        report.line("threads 4 MB", "must 20 GB/s", "us", best * 1e6, 200, {best / 2e-4, best / 2e-4, best / 2e-4}, 1, 1,
                    rate >= 20);
    });
  }
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  int rounds = 60;
  Report report;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--quick")) rounds = 16;
    if (!std::strcmp(argv[i], "--json") && i + 1 < argc && world.rank() == 0) report.json = std::fopen(argv[i + 1], "a");
  }
  if (world.size() > 1) processes(world, rounds, report);
  int done = 0;
  if (world.rank() == 0) {
    threads(rounds, report);
    for (int r = 1; r < world.size(); ++r) world.send(std::span<int>(&done, 1), r);
  } else {
    world.recv(std::span<int>(&done, 1), 0);             // asleep, out of the way
  }
  if (report.json) std::fclose(report.json);
}
