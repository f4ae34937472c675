// SPDX-License-Identifier: Apache-2.0
// The threads of a rank: one persistent set, one parallel region a step, barriers that spin briefly and then sleep on a
// futex (std::atomic::wait), so that ranks which share a core crawl forward instead of standing.
#pragma once
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// Cores that this process may run on (the affinity mask; mpirun binds a rank to one core while hardware_concurrency says all).
inline int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

namespace detail {
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// A barrier for `count` threads. Spins for `spins` turns before it sleeps: 0 where threads outnumber cores.
class SpinBarrier {
 public:
  explicit SpinBarrier(int count, int spins) : count_(count), spins_(spins) {}

  void arrive_and_wait() {
    const unsigned phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.fetch_add(1, std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_seq_cst) != 0) phase_.notify_all();
      return;
    }
    for (int i = 0; i < spins_; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
      cpu_relax();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (phase_.load(std::memory_order_seq_cst) == phase) phase_.wait(phase, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  int count_, spins_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> phase_{0};
  alignas(64) std::atomic<int> sleepers_{0};
};
}  // namespace detail

/// One thread's view of the set it runs in.
struct Worker {
  int index = 0, count = 1;
  detail::SpinBarrier* shared_barrier = nullptr;

  /// Waits until every worker of the set has come here.
  void barrier() const {
    if (count > 1) shared_barrier->arrive_and_wait();
  }
  /// This worker's part of [0, n), in multiples of `grain` but for the last.
  constexpr std::pair<long, long> slice(long n, long grain = 1) const {
    const long blocks = (n + grain - 1) / grain, lo = blocks * index / count * grain, hi = blocks * (index + 1) / count * grain;
    return {lo < n ? lo : n, hi < n ? hi : n};
  }
};

/// A persistent set of threads. The calling thread is worker 0; `run` is one parallel region. Not copyable, not re-entrant.
class Workers {
 public:
  /// n threads; 0: as many as the affinity mask has cores, or SKEIN_THREADS where that is set.
  explicit Workers(int n = 0) : count_(n > 0 ? n : default_count()), barrier_(count_, spins_for(count_)), start_(count_, spins_for(count_)) {
    for (int i = 1; i < count_; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    call_ = nullptr;
    if (count_ > 1) start_.arrive_and_wait();
    for (std::thread& t : threads_) t.join();
  }

  int size() const { return count_; }

  /// Runs f(Worker&) on every worker and returns when all have returned. An exception of any is rethrown here (the lowest
  /// index wins); a function that throws between two of its barriers leaves the others waiting, so throw before or after.
  template <class Function> void run(Function&& f) {
    if (count_ == 1) {
      Worker w;
      f(w);
      return;
    }
    object_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    call_ = [](void* object, Worker& w) { (*static_cast<std::remove_reference_t<Function>*>(object))(w); };
    start_.arrive_and_wait();
    work(0);
    start_.arrive_and_wait();
    std::exception_ptr first;                                // the others are dropped: they must not reach a later region
    for (std::exception_ptr& e : errors_)
      if (auto error = std::exchange(e, nullptr); error && !first) first = error;
    if (first) std::rethrow_exception(first);
  }

  static int default_count() {
    if (const char* text = std::getenv("SKEIN_THREADS"); text && std::atoi(text) > 0) return std::atoi(text);
    return available_cores();
  }

 private:
  static int spins_for(int count) { return count <= available_cores() ? 4000 : 0; }

  void serve(int index) {
    while (true) {
      start_.arrive_and_wait();
      if (!call_) return;
      work(index);
      start_.arrive_and_wait();
    }
  }
  void work(int index) {
    Worker w{index, count_, &barrier_};
    try {
      call_(object_, w);
    } catch (...) {
      errors_[index] = std::current_exception();
    }
  }

  int count_;
  detail::SpinBarrier barrier_, start_;
  void* object_ = nullptr;
  void (*call_)(void*, Worker&) = nullptr;
  std::vector<std::exception_ptr> errors_ = std::vector<std::exception_ptr>(static_cast<std::size_t>(count_));
  std::vector<std::thread> threads_;
};

}  // namespace skein::inline SKEIN_ABI
