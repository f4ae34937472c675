// SPDX-License-Identifier: Apache-2.0
// MPI's rule of progress, over all engines of the host: what a rank has started on one communicator goes on while its thread
// waits, or polls, in another one. Each engine works in its own waits alone; here it finds those that its thread has used as
// well.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <thread>  // std::chrono's durations as well: <chrono> itself brings streams

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
class EnginesOfThread;
}

/// An engine whose calls go on only while a thread is within it. It belongs to the thread that has called it last.
class Progress {
 public:
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Moves what this thread has under way in other engines than `waiting`, without waiting; false where nothing could be done.
  /// What goes wrong there is said by the next call of that engine: a CommError again; an exception of the user's
  /// once, which other engines of the thread that fail meanwhile throw too.
  static bool move_others(const Progress* waiting);
  /// This thread is moving an engine: nothing that waits for other ranks may be begun.
  static bool moving();
  /// What an engine throws that has failed: a CommError of the message. Where the exception of a user's function has ended one of
  /// this thread's engines while it was moved, that in its place: the message is what others are told of it.
  [[noreturn]] static void throw_failed(const std::string& message);
  /// Whether throw_failed has thrown this in place of its message.
  static bool is_users(const std::exception_ptr& thrown);
  /// How long a thread that waits in `waiting` may sleep, at most `longest`: shortly, where there is something to move.
  static std::chrono::nanoseconds nap(const Progress* waiting, std::chrono::nanoseconds longest);

 protected:
  Progress() = default;
  ~Progress() { leave_thread(); }

  /// In each call of the engine: from here on the calling thread moves it.
  void called() {
    if (of_thread_.get() != here_ || !of_thread_ || users_) [[unlikely]] {
      join_thread();
      rethrow_users();
    }
  }
  /// In a call that ends the engine, which throws nothing of what has happened before.
  void called_to_end() { join_thread(); }
  /// First in the engine's destructor: no thread moves it any more.
  void leave_thread() noexcept;

 private:
  friend detail::EnginesOfThread;
  /// Something has been started that is not complete.
  virtual bool under_way() const = 0;
  /// One piece of work that can be done without waiting; false where there is none. May throw what its own calls do.
  virtual bool move_on() = 0;
  void join_thread();
  void rethrow_users();

  static inline constinit thread_local detail::EnginesOfThread* here_ = nullptr;
  std::shared_ptr<detail::EnginesOfThread> of_thread_;
  std::atomic<bool> moves_{false};
  std::exception_ptr users_;  // of a function that reduces
};

/// Calls of Engine wait for the other ranks where they are started.
template <class Engine> inline constexpr bool starts_by_waiting = requires { requires Engine::starts_by_waiting; };

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "progress.ipp"
#endif
