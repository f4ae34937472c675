// SPDX-License-Identifier: Apache-2.0
// Candidates of several ranks. Rank 0 leads: it measures and reports; the others serve. Between two requests a rank sleeps (MPI's
// own waiting would spin on a core that the next candidate needs); a slice begins and ends with a barrier.
#pragma once
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <skein/mpi.hpp>

#include "training.hpp"

namespace bench {

/// A candidate of two ranks over a communicator: on every rank the same function, called with a count. Comm: two ranks.
template <class Comm> class Ranks {
 public:
  /// `works`: by its number, what this rank does so often.
  using Work = std::function<void(long)>;
  Ranks(Comm& comm, std::vector<Work> works) : comm_(&comm), works_(std::move(works)) {}

  /// Rank 0: work number `which` on all ranks; seconds from when all begin to when all have ended.
  Slice run(int which, long n) {
    const long order[2] = {which, n};
    send(order);
    return serve_one(which, n);
  }
  Candidate candidate(int which) {
    return [this, which](long n) { return run(which, n); };
  }
  /// The other ranks, until rank 0 says stop().
  void serve() {
    for (long order[2];;) {
      receive(order);
      if (order[0] < 0) return;
      serve_one(static_cast<int>(order[0]), order[1]);
    }
  }
  void stop() {
    const long order[2] = {-1, 0};
    send(order);
  }

 private:
  Slice serve_one(int which, long n) {
    const Work& work = works_[static_cast<std::size_t>(which)];
    work(1);
    comm_->barrier();
    return timed(1, [&] {
      work(n);
      comm_->barrier();
    });
  }
  static constexpr bool processes = Comm::name == "MpiComm";
  void send(const long (&order)[2]) {
    if constexpr (processes) {
      MPI_Request request;
      MPI_Isend(order, 2, MPI_LONG, 1, 31000, MPI_COMM_WORLD, &request);
      for (int done = 0; !done; usleep(50)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    } else {
      shared_[0] = order[0], shared_[1] = order[1];
      turn_.fetch_add(1);
      turn_.notify_all();
    }
  }
  void receive(long (&order)[2]) {
    if constexpr (processes) {
      for (int there = 0; !there; usleep(200)) MPI_Iprobe(0, 31000, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      MPI_Recv(order, 2, MPI_LONG, 0, 31000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      while (turn_.load() == seen_) turn_.wait(seen_);
      ++seen_;
      order[0] = shared_[0], order[1] = shared_[1];
    }
  }

  Comm* comm_;
  std::vector<Work> works_;
  int seen_ = 0;
  inline static std::atomic<int> turn_{0};  // of ranks that are threads; one pair at a time
  inline static long shared_[2] = {0, 0};

 public:
  static void begin() { turn_ = 0; }  // before a new pair of threads
};

/// Rank 0 measures while the others serve. `make(comm)` gives each rank its works; `measure(ranks)` runs on rank 0.
template <class Comm, class Make, class Measure> void lead(Comm& comm, Make&& make, Measure&& measure) {
  Ranks<Comm> ranks(comm, make(comm));
  comm.barrier();
  if (comm.rank() == 0) {
    measure(ranks);
    ranks.stop();
  } else {
    ranks.serve();
  }
  comm.barrier();
}

/// The same over two threads of this process, one core each; then this thread may run anywhere again.
template <class Make, class Measure> void lead_threads(Make&& make, Measure&& measure) {
  Ranks<sk::ThreadComm>::begin();
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  bind_to(-1);
  sk::spawn(2, [&](sk::ThreadComm& comm) {
    if (sk::available_cores() > 1) bind_to(comm.rank());
    lead(comm, make, measure);
  });
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace bench
