// SPDX-License-Identifier: Apache-2.0
// The bodies of signal_watch.hpp.
#pragma once
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "signal_watch.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Of the process. What the handler reads is free of locks.
struct Signals {
  std::mutex mutex;
  int watches = 0;
  int numbers[3] = {};
  struct sigaction before[3] = {};
  std::atomic<int> received{0};
  std::atomic<long long> since{0};  // nanoseconds
  std::atomic<bool> taken{false}, says{false};
};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<long long>::is_always_lock_free, "a handler takes no lock");
SKEIN_INLINE Signals& signals() {
  static Signals all;
  return all;
}

extern "C" inline void skein_keep_signal(int number) {
  Signals& s = signals();
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  const long long now = 1000000000ll * t.tv_sec + t.tv_nsec;
  int none = 0;
  if (s.received.compare_exchange_strong(none, number)) {
    s.since = now;
    constexpr char text[] = "\nskein: a signal ends the fit after this step; a second one ends the program at once\n";
    if (s.says) (void)!::write(2, text, sizeof text - 1);
    return;
  }
  if (now - s.since < 500000000) return;  // launchers send several signals at once
  ::signal(number, SIG_DFL);
  (void)::raise(number);  // delivered when this handler has returned
}
}  // namespace detail

SKEIN_INLINE SignalWatch::SignalWatch(const FitInterrupt& options, int rank) : watches_(options.on_signals || options.also != 0) {
  if (!watches_) return;
  detail::Signals& s = detail::signals();
  const std::lock_guard lock(s.mutex);
  if (rank == 0) s.says = true;
  if (s.watches++ > 0) return;
  s.received = 0;
  s.taken = false;
  const int wanted[3] = {options.on_signals ? SIGINT : 0, options.on_signals ? SIGTERM : 0, options.also};
  for (int i = 0; i < 3; ++i) {
    s.numbers[i] = 0;
    if (wanted[i] == 0 || ::sigaction(wanted[i], nullptr, &s.before[i]) != 0) continue;
    if ((s.before[i].sa_flags & SA_SIGINFO) != 0 || s.before[i].sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = &detail::skein_keep_signal;
    ours.sa_flags = SA_RESTART;
    if (::sigaction(wanted[i], &ours, nullptr) == 0) s.numbers[i] = wanted[i];
  }
}

SKEIN_INLINE SignalWatch::~SignalWatch() {
  if (!watches_) return;
  detail::Signals& s = detail::signals();
  const std::lock_guard lock(s.mutex);
  if (--s.watches > 0) return;
  s.says = false;
  for (int i = 0; i < 3; ++i)
    if (s.numbers[i] != 0) (void)::sigaction(s.numbers[i], &s.before[i], nullptr);
  const int left = s.received.exchange(0);
  if (left != 0 && !s.taken) (void)::kill(::getpid(), left);
}

SKEIN_INLINE int SignalWatch::received() { return detail::signals().received; }
SKEIN_INLINE void SignalWatch::taken() { detail::signals().taken = true; }

SKEIN_INLINE const char* name_of_signal(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "a signal";
  }
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
