// SPDX-License-Identifier: Apache-2.0
// The threads of a rank: one persistent set, one parallel region a step, barriers that spin briefly and then sleep on a
// futex (std::atomic::wait), so that ranks which share a core crawl forward instead of standing. A worker that throws takes the
// others with it.
#pragma once
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "config.hpp"
#include "denormals.hpp"
#include "error.hpp"

namespace skein::inline SKEIN_ABI {

/// Cores of a machine, as many as Linux knows. (A type with a name: cpu_set_t has none, and nvcc cannot destroy a vector of it.)
struct Cores {
  cpu_set_t sets[8]{};

  static constexpr int most = 8 * CPU_SETSIZE;  ///< as Linux's own for x86-64; a single set holds 1024, and the system refuses it
  int count() const { return CPU_COUNT_S(sizeof sets, sets); }
  void add(int core) { CPU_SET_S(static_cast<std::size_t>(core), sizeof sets, sets); }
  void add(const Cores& others) { CPU_OR_S(sizeof sets, sets, sets, others.sets); }
};
/// The cores that this process may run on (the affinity mask; mpirun binds a rank to one core while hardware_concurrency says
/// all).
Cores own_cores();
/// How many of them it may keep busy: all, or as many as the quota of its container has (cpu_quota). One where the system does
/// not say.
int available_cores();

namespace detail {
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// What unwinds a worker whose barrier is cancelled. Not a std::exception: nobody is meant to catch it but Workers.
struct RegionCancelled {};
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_cancelled() { throw RegionCancelled{}; }

/// A barrier for `count` threads, which can be cancelled: those that wait and those that come later leave by RegionCancelled. A
/// meeting to which all have come is one for all, so that what they do next (have I made my copy of the weights?) does not differ
/// between them. Spins for `spins` turns before it sleeps: 0 where threads outnumber cores.
class SpinBarrier {
 public:
  explicit SpinBarrier(int count, int spins) : count_(count), spins_(spins) {}

  void arrive_and_wait() {
    const unsigned phase = phase_.load(std::memory_order_relaxed);
    if (phase & cancelled) throw_cancelled();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.fetch_add(next, std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_seq_cst) != 0) phase_.notify_all();
      return;
    }
    if (wait_after(phase) == (phase | cancelled)) throw_cancelled();
  }
  /// From any thread, also one that is not counted.
  void cancel();
  /// Makes the barrier as new, while no thread is in it: somebody else's barrier says that none is.
  void reset() {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned cancelled = 1, next = 2;  // the lowest bit of phase_; a phase

  /// The value that comes after `phase`.
  unsigned wait_after(unsigned phase) {
    for (int i = 0; i < spins_; ++i) {
      if (const unsigned now = phase_.load(std::memory_order_acquire); now != phase) return now;
      cpu_relax();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    unsigned now = phase_.load(std::memory_order_seq_cst);
    for (; now == phase; now = phase_.load(std::memory_order_seq_cst)) phase_.wait(phase, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return now;
  }

  int count_, spins_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> phase_{0};
  alignas(64) std::atomic<int> sleepers_{0};
};
/// Throws Error: of so many threads that `what` wants the system has started so many, for that reason; `instead`: what helps.
[[noreturn]] void refuse_threads(const std::string& what, int threads, std::size_t started, const char* reason,
                                 const char* instead);
}  // namespace detail

/// One thread's view of the set it runs in.
struct Worker {
  int index = 0, count = 1;
  detail::SpinBarrier* shared_barrier = nullptr;

  /// Waits until every worker of the set has come here. Does not return where a worker of the region has thrown: it unwinds then,
  /// to the end of the region.
  void barrier() const {
    if (count > 1) shared_barrier->arrive_and_wait();
  }
  /// This worker's part of [0, n), in multiples of `grain` but for the last.
  constexpr std::pair<long, long> slice(long n, long grain = 1) const {
    if (count == 1) return {0, n};  // divisions take longer than this question
    const long blocks = (n + grain - 1) / grain, lo = blocks * index / count * grain, hi = blocks * (index + 1) / count * grain;
    return {lo < n ? lo : n, hi < n ? hi : n};
  }
};

/// A persistent set of threads. The calling thread is worker 0; `run` is one parallel region. Not copyable, not re-entrant.
class Workers {
 public:
  /// n threads; 0: as many as the affinity mask has cores, or SKEIN_THREADS where that is set. Denormals: within regions, on all
  /// workers; the calling thread has its own mode again after each. Throws Error where the system does not start a thread.
  explicit Workers(int n = 0, Denormals denormals = Denormals::flush);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  int size() const { return count_; }
  Denormals denormals() const { return denormals_; }

  /// Runs f(Worker&) on every worker and returns when all have returned. An exception of any worker ends the region for all: who
  /// waits in a barrier, or comes to one later, leaves f by an exception of the library's own. The first in time is rethrown
  /// here, and the next region is as if nothing had been.
  template <class Function> void run(Function&& f) {
    if (count_ == 1) {
      const DenormalScope scope(denormals_);
      Worker w;
      f(w);
      return;
    }
    object_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    call_ = [](void* object, Worker& w) { (*static_cast<std::remove_reference_t<Function>*>(object))(w); };
    start_.arrive_and_wait();
    work(0);
    start_.arrive_and_wait();
    if (failed_.load(std::memory_order_relaxed)) rethrow();
  }

  static int default_count();
  /// The number of threads of one of `local_ranks` ranks that use this machine: SKEIN_THREADS, or its cores. Ranks that share
  /// their cores, as those of one process do, divide them.
  static int default_count(int local_ranks, bool one_process);

 private:
  static int spins_for(int count) { return count <= available_cores() ? 4000 : 0; }

  void serve(int index);
  void work(int index) {
    Worker w{index, count_, &barrier_};
    const DenormalScope scope(denormals_);
    try {
      call_(object_, w);
    } catch (const detail::RegionCancelled&) {
    } catch (...) {
      if (!failed_.exchange(true)) first_ = std::current_exception();
      barrier_.cancel();
    }
  }
  /// After the region: nobody is in its barrier.
  [[noreturn, gnu::cold]] void rethrow();
  void stop();

  int count_;
  Denormals denormals_;
  detail::SpinBarrier barrier_, start_;
  void* object_ = nullptr;
  void (*call_)(void*, Worker&) = nullptr;
  std::atomic<bool> failed_{false};
  std::exception_ptr first_;  // what whoever set failed_ has thrown
  std::vector<std::thread> threads_;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "workers.ipp"
#endif
