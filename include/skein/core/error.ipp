// SPDX-License-Identifier: Apache-2.0
// The bodies of error.hpp.
#pragma once
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include "error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace detail {
struct LastError {
  std::mutex mutex;
  char text[500] = {};
  std::size_t size = 0;
};
/// A run() on this thread, what it calls with the message of the exception that leaves it, and of the last Interrupted.
struct RunInProgress {
  void (*end)(const std::string& message) = nullptr;
  void (*say)(const RunInProgress& run) = nullptr;
  std::string_view program{};
  std::string interrupted{};
  bool said = false;
};
SKEIN_INLINE LastError& the_last_error() {
  static LastError last;
  return last;
}
SKEIN_INLINE std::string last_error() {
  LastError& last = the_last_error();
  const std::lock_guard lock(last.mutex);
  return std::string(last.text, last.size);
}

SKEIN_INLINE RunInProgress*& run_in_progress() {
  static thread_local RunInProgress* run = nullptr;
  return run;
}
SKEIN_INLINE bool leave_to_run(void (*end)(const std::string& message)) {
  RunInProgress* const run = run_in_progress();
  if (run) run->end = end;
  return run != nullptr;
}
SKEIN_INLINE void say_interrupt() {
  RunInProgress* const run = run_in_progress();
  if (!run || run->said || run->interrupted.empty() || std::uncaught_exceptions() == 0 || !Interrupted::any()) return;
  run->said = true;
  run->say(*run);
}
}  // namespace detail

SKEIN_INLINE Error::Error(const std::string& what, SourceLocation where)
    : std::runtime_error(printable(what, Lines::keep)), where_(where) {
  detail::LastError& last = detail::the_last_error();
  const std::lock_guard lock(last.mutex);
  last.size = std::string_view(this->what()).copy(last.text, sizeof last.text);
}

namespace detail {
SKEIN_INLINE std::atomic<int>& interrupts() {
  static std::atomic<int> number{0};
  return number;
}
}  // namespace detail
SKEIN_INLINE MemoryError::MemoryError(std::size_t bytes, SourceLocation where)
    : Error(skein::text("memory: {} bytes for one array are not to be had: a smaller .batch or .capacity, a smaller network or "
                        "data set, or a higher limit (ulimit -v)",
                        bytes),
            where),
      bytes_(bytes) {}

SKEIN_INLINE Interrupted::Interrupted(int signal, const std::string& what, SourceLocation where)
    : Error(what, where), signal_(signal) {
  ++detail::interrupts();
  detail::RunInProgress* const run = detail::run_in_progress();
  if (!run) return;
  run->interrupted = this->what();
  run->said = false;
}
SKEIN_INLINE Interrupted::Interrupted(const Interrupted& o) : Error(o), signal_(o.signal_) { ++detail::interrupts(); }
SKEIN_INLINE Interrupted::~Interrupted() { --detail::interrupts(); }
SKEIN_INLINE bool Interrupted::any() { return detail::interrupts() > 0; }

SKEIN_INLINE void detail::refuse_memory(const std::string& path) {
  throw FileError(path, -1, "needs more memory than this process can have: a smaller file, or a higher limit (ulimit -v)");
}

SKEIN_INLINE void detail::refuse_index(long index, long size, int axis) {
  throw ShapeError(text("index {} of axis {} is not within [0, {})", index, axis, size));
}

SKEIN_INLINE void detail::refuse_value(const char* who, const char* setting, long long value, const char* words) {
  throw ArgumentError(text("{}: {} is {}, and no value of its enumeration has that number: give {}", who, setting, value, words));
}
SKEIN_INLINE void detail::refuse_moved(const char* what) {
  throw ArgumentError(
      text("{} was moved from, and has nothing: use the one that it was moved to, and make a Trainer, Executor or "
           "Predictor of it after the move",
           what));
}

namespace detail {
/// A file as a message calls it.
SKEIN_INLINE std::string said_file(const std::string& path, long long offset) {
  const std::string name = path.empty() ? "an empty path, which names no file" : path;
  return offset >= 0 ? text("{} (byte {})", name, offset) : name;
}
}  // namespace detail
SKEIN_INLINE FileError::FileError(const std::string& path, long long offset, const std::string& what, SourceLocation where)
    : Error(text("{}: {}", detail::said_file(path, offset), what), where), path_(path), offset_(offset) {}
SKEIN_INLINE FileError::FileError(const std::string& path, long long offset, const std::string& what, int error,
                                  SourceLocation where)
    : FileError(path, offset, text("{}: {}", what, std::strerror(error)), where) {
  error_ = error;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
