// SPDX-License-Identifier: Apache-2.0
// The bodies of workers.hpp.
#pragma once
#include <unistd.h>

#include <algorithm>

#include "cpu_quota.hpp"
#include "environment.hpp"
#include "workers.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE Cores own_cores() {
  Cores own;
  if (sched_getaffinity(0, sizeof own.sets, own.sets) != 0) return {};
  return own;
}

SKEIN_INLINE int available_cores() {
  const int n = std::max(1, own_cores().count()), quota = cpu_quota();
  return quota > 0 ? std::min(n, quota) : n;
}

}  // namespace skein::inline SKEIN_ABI

namespace skein::inline SKEIN_ABI::detail {

SKEIN_INLINE void refuse_threads(const std::string& what, int threads, std::size_t started, const char* reason,
                                 const char* instead) {
  throw Error(text("{}: of {} threads the system does not start number {} ({}): {}, or raise the limit (ulimit -u)", what,
                   threads, started + 1, reason, instead));
}

SKEIN_INLINE void SpinBarrier::cancel() {
  phase_.fetch_or(cancelled, std::memory_order_seq_cst);
  phase_.notify_all();
}

}  // namespace skein::inline SKEIN_ABI::detail

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE Workers::Workers(int n, Denormals denormals)
    : count_(n > 0 ? n : default_count()), denormals_(denormals), barrier_(count_, spins_for(count_)),
      start_(count_, spins_for(count_)) {
  threads_.reserve(static_cast<std::size_t>(count_ - 1));
  try {
    for (int i = 1; i < count_; ++i) threads_.push_back(std::thread([this, i] { serve(i); }));
  } catch (const std::exception& e) {
    stop();
    detail::refuse_threads("Workers", count_, threads_.size(), e.what(), "ask for fewer (.threads, SKEIN_THREADS)");
  }
}

namespace detail {
/// What SKEIN_THREADS says; 0: nothing.
SKEIN_INLINE int threads_of_environment() {
  const EnvironmentNumber threads{"a whole number of threads; 0: those of the cores", 0, 1e6, true};
  return static_cast<int>(environment_number("SKEIN_THREADS", 0, threads));
}
}  // namespace detail

SKEIN_INLINE int Workers::default_count() {
  const int n = detail::threads_of_environment();
  return n > 0 ? n : available_cores();
}

SKEIN_INLINE int Workers::default_count(int local_ranks, bool one_process) {
  if (const int n = detail::threads_of_environment(); n > 0) return n;
  const int cores = std::max(1, own_cores().count()), ranks = std::max(1, local_ranks), share = std::max(1, cores / ranks);
  const bool bound = cores < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // mpirun bound this rank to its own
  const int n = bound && !one_process ? cores : share, quota = cpu_quota();    // the quota is that of all of them together
  return quota > 0 ? std::min(n, std::max(1, quota / ranks)) : n;
}

SKEIN_INLINE void Workers::serve(int index) {
  try {
    while (true) {
      start_.arrive_and_wait();
      work(index);
      start_.arrive_and_wait();
    }
  } catch (const detail::RegionCancelled&) {  // stop()
  }
}

SKEIN_NOINLINE SKEIN_INLINE void Workers::rethrow() {
  barrier_.reset();
  failed_ = false;
  std::rethrow_exception(std::exchange(first_, nullptr));
}

SKEIN_INLINE void Workers::stop() {
  start_.cancel();
  for (std::thread& t : threads_) t.join();
}

}  // namespace skein::inline SKEIN_ABI
