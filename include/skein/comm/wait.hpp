// SPDX-License-Identifier: Apache-2.0
// Waiting for a counter of another rank, thread or process: a short spin while ranks do not outnumber cores, then a futex
// with a time limit (std::atomic::wait has none, and does not reach another process). Eight ranks on two cores crawl forward.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>  // std::chrono's durations as well: <chrono> itself brings streams
#include <vector>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include "../core/workers.hpp"

namespace skein::inline SKEIN_ABI::comm {

using Counter = std::atomic<std::uint32_t>;
static_assert(Counter::is_always_lock_free, "counters are shared between processes: they must be lock-free");

/// Who waits on a counter: threads of one process, or processes of one machine.
enum class Reach { Process, Machine };

/// Counters only grow (and wrap): has it come to `need`?
inline bool reached(std::uint32_t have, std::uint32_t need) { return static_cast<std::int32_t>(have - need) >= 0; }

/// What one rank tells the others, on cache lines of its own.
struct alignas(128) Line {
  Counter counter[3] = {};
  Counter sleepers{0};
  Counter busy{0};  // reading or writing others' memory just now
  Counter gone{0};  // will make no further call
};

/// "Rank's counter `which` has come to `value`."
struct Need {
  Line* line = nullptr;
  int which = 0;
  std::uint32_t value = 0;
  bool met() const { return reached(line->counter[which].load(std::memory_order_acquire), value); }
};

/// Sleeps while `word` is `seen`, at most `limit`; may return early.
inline void sleep_while(const Counter& word, std::uint32_t seen, [[maybe_unused]] Reach reach, std::chrono::nanoseconds limit) {
#if defined(__linux__)
  const timespec t{static_cast<time_t>(limit.count() / 1000000000), static_cast<long>(limit.count() % 1000000000)};
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), reach == Reach::Process ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT,
          seen, &t, nullptr, 0);
#else
  if (word.load(std::memory_order_acquire) == seen)
    std::this_thread::sleep_for(limit < std::chrono::microseconds(100) ? limit : std::chrono::microseconds(100));
#endif
}

/// Wakes all who sleep on the counter, within the process or in all that share its memory.
inline void wake_all([[maybe_unused]] const Counter& word, [[maybe_unused]] Reach reach) {
#if defined(__linux__)
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), reach == Reach::Process ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE,
          0x7fffffff, nullptr, nullptr, 0);
#endif
}

/// Sets a counter of this rank and wakes who sleeps on it.
inline void publish(Line& own, int which, std::uint32_t value, Reach reach) {
  own.counter[which].store(value, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) != 0) wake_all(own.counter[which], reach);
}

/// Waits for a need, at most `limit` beyond the spin; true if it was met.
inline bool wait_for(const Need& need, int spins, Reach reach, std::chrono::nanoseconds limit) {
  for (int i = 0; i < spins; ++i) {
    if (need.met()) return true;
    skein::detail::cpu_relax();
  }
  need.line->sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t seen = need.line->counter[need.which].load(std::memory_order_seq_cst);
  if (!reached(seen, need.value)) sleep_while(need.line->counter[need.which], seen, reach, limit);
  need.line->sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return need.met();
}

/// Seconds of whoever looks at it often: from one look to the next they are at most `longest`. A process that was stopped
/// (Ctrl-Z, `scontrol suspend`, a debugger) has not waited for the others in that time: they may have stood still as well.
class AwakeClock {
 public:
  explicit AwakeClock(double longest) : longest_(longest) {}
  /// For a wait of so many seconds.
  static AwakeClock of(double deadline) { return AwakeClock(deadline < 2 ? deadline / 4 : 0.5); }
  double now() { return now(longest_); }
  /// A look for which the time since the last one counts up to so many seconds.
  double now(double longest);

 private:
  double longest_, last_ = 0, awake_ = 0;
};

/// The clock of one wait: started when the wait turns long, stopped when something has moved. Looked at every 20 ms or so.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds), clock_(AwakeClock::of(seconds)) {}
  /// One that is running.
  static Deadline from_now(double seconds) {
    Deadline d(seconds);
    return d.start(), d;
  }
  void start();
  void stop() { running_ = false; }
  double waited();
  /// Seconds until it is over; below 0 where it is.
  double left() { return seconds_ - waited(); }
  /// Makes a call that does not look, whose time counts whole; that before it, in which this process may have been stopped, as
  /// ever.
  template <class Call> auto count_whole(const Call& call) {
    (void)waited();
    const auto result = call();
    if (running_) (void)clock_.now(1e18);
    return result;
  }
  bool over() { return running_ && waited() >= seconds_; }
  double limit() const { return seconds_; }
  /// How long one sleep may be: short enough to see failures, and never beyond the deadline by much. Of limits from 2 ms on
  /// it is shorter than what the clock counts from one look to the next.
  std::chrono::nanoseconds sleep_interval() const {
    const double part = seconds_ / 8;
    return std::chrono::nanoseconds(static_cast<long long>(1e9 * (part < 0.0005 ? 0.0005 : part < 0.02 ? part : 0.02)));
  }

 private:
  double seconds_;
  AwakeClock clock_;
  bool running_ = false;
  double since_ = 0;
};

/// How often a rank looks before it sleeps, from own_cores() of each rank of its node: not at all where the ranks outnumber their
/// cores, all together (mpirun may bind each rank to a core of its own).
int spins_of(const std::vector<Cores>& cores);

/// "0.5 s".
std::string seconds_text(double s);

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "wait.ipp"
#endif
