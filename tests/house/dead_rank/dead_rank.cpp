// SPDX-License-Identifier: Apache-2.0
// A training of three processes of which one dies or stops in its second epoch, by a signal to itself. The others print what they
// are told, and after how long; then the first ends what stands still. Usage: dead_rank TRANSPORT THREADS SIGNAL; the transport
// "server" is shared memory, over which the last rank is a parameter server, that looks for messages and never waits for one.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/parallel/server/parameter_server.hpp>

#include "../../support/failure_cases.hpp"

namespace sk = skein;
using Clock = std::chrono::steady_clock;

namespace {
Clock::time_point second_epoch;

struct Signal {
  int signal;  // 0: none
  void on_epoch_begin(int epoch, sk::train::FitControl&) const {
    if (epoch != 2) return;
    second_epoch = Clock::now();
    if (signal) ::kill(::getpid(), signal);
  }
};

sk::CommOptions options_of(const std::string& transport, int signal) {
  sk::CommOptions o;
  o.deadline = signal == SIGKILL ? 60 : 3;  // who has died is not waited for
  o.shared_memory = transport == "memory" || transport == "pages" || transport == "levels" || transport == "server";
  o.order = transport == "native" || transport == "levels" ? sk::ReductionOrder::native : sk::ReductionOrder::ranks;
  o.node_size = transport == "levels" ? 2 : 0;
  o.level_bytes = 1;
  return o;
}

template <class Policy> void fit(sk::MpiComm& world, int threads, int signal, const Policy& policy) {
  const long samples = 32 * world.size();
  std::vector<float> x(static_cast<std::size_t>(samples) * 12);
  std::vector<std::int32_t> y(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(3, 0, i);
  const auto data = sk::data::InMemory<float>({1, {12}}, std::move(x), std::move(y), 4);
  failure_cases::Model model{sk::Seed{5}};
  sk::Trainer trainer{model, failure_cases::ThrowingLoss{}, sk::optim::Sgd{.lr = 0.01f}, policy};
  sk::FitOptions o{.epochs = 3, .batch = 16 * world.size(), .progress = false, .threads = threads};
  o.callbacks.add(Signal{world.rank() == 1 ? signal : 0});
  trainer.fit(data, o);
}
/// Sums in shared pages, before the sixth of which rank 1 gets its signal.
void sum_in_pages(sk::MpiComm& world, int signal) {
  const sk::comm::SharedPages pages = world.share(1 << 18);
  if (!pages) throw std::runtime_error("there are no shared pages");
  for (int i = 0; i < 1000; ++i) {
    if (i == 5) second_epoch = Clock::now();
    if (i == 5 && world.rank() == 1) ::kill(::getpid(), signal);
    world.all_reduce(pages.span<float>());
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  sk::MpiComm world{argc, argv, options_of(argv[1], std::atoi(argv[3]))};
  const std::vector<pid_t> processes = world.all_gather(::getpid());
  const int rank = world.rank(), last = world.size() - 1;
  std::string text = "nothing";
  second_epoch = Clock::now();  // of a server, which has no epochs
  try {
    const int threads = std::atoi(argv[2]), signal = std::atoi(argv[3]);
    if (argv[1] == std::string("pages")) sum_in_pages(world, signal);
    else if (argv[1] == std::string("server")) fit(world, threads, signal, sk::parallel::ParameterServer{world});
    else fit(world, threads, signal, sk::parallel::DataParallel{world});
  } catch (const std::exception& e) { text = e.what(); }
  const double seconds = std::chrono::duration<double>(Clock::now() - second_epoch).count();
  std::printf("rank %d of %d, after %.1f s: %s\n", rank, last + 1, seconds, text.c_str());
  std::fflush(stdout);
  if (rank == 0) {
    for (int r = 2; r <= last; ++r)  // the rest may still be told
      for (int i = 0; i < 1000 && ::kill(processes[static_cast<std::size_t>(r)], 0) == 0; ++i) ::usleep(10000);
    ::kill(processes[1], SIGKILL);
  }
  ::_exit(0);  // MPI_Finalize would wait for the dead
}
