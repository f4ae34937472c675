// SPDX-License-Identifier: Apache-2.0
// The bodies of signal_watch.hpp.
#pragma once
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <exception>
#include <iterator>
#include <mutex>

#include "../core/error.hpp"
#include "signal_watch.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// The signals of the process. What the handler reads is free of locks. Signals that come while a fit is ending are of one
/// round: the next begins with the first fit that begins after all of this one's have ended a fit.
struct Signals {
  static constexpr int count = 64;  // as many as Linux has, from 1
  std::mutex mutex;
  int watches = 0;
  int watched[count + 1] = {};  // by how many
  struct sigaction before[count + 1] = {};
  std::uint32_t taken[count + 1] = {};  // the last round in which it ended a fit
  std::atomic<std::uint32_t> over{0};   // the last round that is over
  /// Each signal's last round, and its first instant there: milliseconds of 32 bits.
  std::atomic<std::uint64_t> heard[count + 1] = {};
  std::atomic<std::uint64_t> together[count + 1] = {};  // the signals that end the same fits
  std::atomic<int> say[3] = {};                         // watches of rank 0, by what ends before the fit does
  std::atomic<bool> pipe_ignored{false};
};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free,
              "a handler takes no lock");
SKEIN_INLINE Signals& signals() {
  static Signals all;
  return all;
}
constexpr std::uint64_t bit_of(int signal) { return 1ull << (signal - 1); }
constexpr std::uint32_t round_of(std::uint64_t heard) { return static_cast<std::uint32_t>(heard >> 32); }

/// Ctrl-C ends the reader of a pipe as well; what is written from now on is lost, and the training is not.
SKEIN_INLINE void ignore_broken_pipes(Signals& s) {
  struct sigaction pipe {};
  if (::sigaction(SIGPIPE, nullptr, &pipe) != 0 || (pipe.sa_flags & SA_SIGINFO) != 0 || pipe.sa_handler != SIG_DFL) return;
  pipe.sa_handler = SIG_IGN;
  if (::sigaction(SIGPIPE, &pipe, nullptr) == 0) s.pipe_ignored = true;
}

/// One write, of what a handler may do.
inline void say_at_signal(int number, const char* after) {
  char text[200];
  std::size_t length = 0;
  for (const char* part :
       {"\nskein: ", name_of_signal(number), " ends the fit ", after, "; a second signal ends the program at once\n"})
    for (; *part != '\0' && length < sizeof text; ++part) text[length++] = *part;
  (void)!::write(2, text, length);
}

extern "C" inline void skein_keep_signal(int number) {
  const int error = errno;
  Signals& s = signals();
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  const auto now = static_cast<std::uint32_t>(1000ll * t.tv_sec + t.tv_nsec / 1000000);
  const std::uint32_t round = s.over + 1;
  const std::uint64_t together = s.together[number];
  bool first = true, second = false;
  for (int i = 1; i <= Signals::count; ++i)
    if (const std::uint64_t h = s.heard[i]; (together & bit_of(i)) != 0 && round_of(h) == round) {
      first = false;
      second = second ||
               static_cast<std::int32_t>(now - static_cast<std::uint32_t>(h)) >= 500;  // launchers send several signals at once
    }
  if (std::uint64_t h = s.heard[number]; round_of(h) != round)
    (void)s.heard[number].compare_exchange_strong(h, static_cast<std::uint64_t>(round) << 32 | now);
  if (first) {
    ignore_broken_pipes(s);
    if (s.say[0] > 0) say_at_signal(number, "after this step");
    else if (s.say[1] > 0) say_at_signal(number, "when all ranks have made the same step, within about a second");
    else if (s.say[2] > 0) say_at_signal(number, "after this epoch");
  }
  if (second) {
    ::signal(number, SIG_DFL);
    (void)::raise(number);  // delivered when this handler has returned
  }
  errno = error;
}

/// False where the program has its own way with it.
SKEIN_INLINE bool install(Signals& s, int number) {
  struct sigaction& before = s.before[number];
  if (::sigaction(number, nullptr, &before) != 0) return false;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return false;
  struct sigaction ours {};
  ours.sa_handler = &skein_keep_signal;
  ours.sa_flags = SA_RESTART;
  ::sigfillset(&ours.sa_mask);
  return ::sigaction(number, &ours, nullptr) == 0;
}
SKEIN_INLINE bool is_ours(const struct sigaction& a) {
  return (a.sa_flags & SA_SIGINFO) == 0 && a.sa_handler == &skein_keep_signal;
}
/// A handler that the program has installed since stays.
SKEIN_INLINE void give_back(Signals& s, int number) {
  struct sigaction now {};
  if (::sigaction(number, nullptr, &now) == 0 && is_ours(now)) (void)::sigaction(number, &s.before[number], nullptr);
}
/// A signal of this round that has ended no fit; 0: none.
SKEIN_INLINE int left_over(const Signals& s) {
  const std::uint32_t round = s.over + 1;
  for (int i = 1; i <= Signals::count; ++i)
    if (round_of(s.heard[i]) == round && s.taken[i] != round) return i;
  return 0;
}
}  // namespace detail

SKEIN_INLINE void check_interrupt(const FitInterrupt& options) {
  const int n = options.also;
  if (n == 0) return;
  struct sigaction now {};
  if (n < 0 || n > detail::Signals::count || n == SIGKILL || n == SIGSTOP || ::sigaction(n, nullptr, &now) != 0)
    throw ArgumentError(
        text("fit: .interrupt.also is {}: give a signal that a program can keep, such as SIGUSR1 ({}); 0: none "
             "beside SIGINT and SIGTERM",
             n, SIGUSR1));
}

SKEIN_INLINE SignalWatch::SignalWatch(const FitInterrupt& options, int rank, Ends when)
    : exceptions_(std::uncaught_exceptions()), when_(when) {
  detail::Signals& s = detail::signals();
  const std::lock_guard lock(s.mutex);
  ++s.watches;
  const bool heard = std::any_of(std::begin(s.heard), std::end(s.heard),
                                 [round = s.over + 1](const auto& h) { return detail::round_of(h) == round; });
  if (heard && detail::left_over(s) == 0) ++s.over;  // what was heard has ended its fits
  before_ = s.over;
  for (const int n : {options.on_signals ? SIGINT : 0, options.on_signals ? SIGTERM : 0, options.also})
    if (n != 0 && (own_ & detail::bit_of(n)) == 0 && (s.watched[n] > 0 || detail::install(s, n)))
      ++s.watched[n], own_ |= detail::bit_of(n);
  for (int i = 1; i <= detail::Signals::count; ++i)
    if ((own_ & detail::bit_of(i)) != 0) s.together[i] |= own_;
  says_ = rank == 0 && own_ != 0;
  if (says_) ++s.say[static_cast<int>(when_)];
}

SKEIN_INLINE SignalWatch::~SignalWatch() {
  if (taken_) note_taken();  // what came meanwhile as well: launchers send several
  detail::Signals& s = detail::signals();
  const std::lock_guard lock(s.mutex);
  if (says_) --s.say[static_cast<int>(when_)];
  for (int i = 1; i <= detail::Signals::count; ++i)
    if ((own_ & detail::bit_of(i)) != 0 && --s.watched[i] == 0) {
      detail::give_back(s, i);
      s.together[i] = 0;
    }
  if (--s.watches > 0) return;
  if (s.pipe_ignored.exchange(false)) {
    struct sigaction pipe {};
    if (::sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler == SIG_IGN) ::signal(SIGPIPE, SIG_DFL);
  }
  const int left = detail::left_over(s);
  ++s.over;
  if (left != 0 && std::uncaught_exceptions() <= exceptions_) (void)::kill(::getpid(), left);
}

SKEIN_INLINE int SignalWatch::received() const {
  const detail::Signals& s = detail::signals();
  int found = 0;
  std::uint64_t first = ~0ull;
  for (std::uint64_t rest = own_; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest) + 1;
    if (const std::uint64_t h = s.heard[i]; detail::round_of(h) > before_ && h < first) first = h, found = i;
  }
  return found;
}

SKEIN_INLINE void SignalWatch::note_taken() {
  detail::Signals& s = detail::signals();
  const std::lock_guard lock(s.mutex);
  for (int i = 1; i <= detail::Signals::count; ++i)
    if (const std::uint32_t round = detail::round_of(s.heard[i]); (own_ & detail::bit_of(i)) != 0 && round > before_)
      s.taken[i] = round;
}

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

SKEIN_INLINE void leave_served(int signal) {
  throw Interrupted(signal, text("fit: {} ended it on the ranks that this one served", name_of_signal(signal)));
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
