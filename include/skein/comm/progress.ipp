// SPDX-License-Identifier: Apache-2.0
// The bodies of progress.hpp.
#pragma once
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "progress.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
/// The engines that one thread has called last. The thread itself adds and moves them; another one takes away those that it
/// calls, or destroys.
class EnginesOfThread {
 public:
  /// Those of the calling thread; null once its end has begun.
  static std::shared_ptr<EnginesOfThread> here() {
    thread_local const Holder holder;
    return Progress::here_ ? holder.engines : nullptr;
  }
  void add(Progress* engine) {
    const std::lock_guard lock(mutex_);
    engines_.push_back(engine);
    count_.store(engines_.size(), std::memory_order_relaxed);
  }
  /// Once nobody moves it.
  void remove(Progress* engine) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(engines_, engine);
      count_.store(engines_.size(), std::memory_order_relaxed);
    }
    while (engine->moves_.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  bool any_beside(const Progress* waiting) {
    if (count_.load(std::memory_order_relaxed) < (waiting ? 2u : 1u)) return false;
    const std::lock_guard lock(mutex_);
    return std::any_of(engines_.begin(), engines_.end(), [&](const Progress* e) { return e != waiting && e->under_way(); });
  }
  bool move_others(const Progress* waiting) {
    if (moving_ || !any_beside(waiting)) return false;  // a piece of work may wait itself
    moving_ = true;
    bool moved = false;
    for (std::size_t i = 0; Progress* const engine = take(i, waiting); ++i) {
      try {
        moved = engine->move_on() || moved;
      } catch (const CommError&) {  // the engine has failed: its next call says so
      } catch (...) { engine->users_ = std::current_exception(); }
      engine->moves_.store(false, std::memory_order_release);
    }
    moving_ = false;
    return moved;
  }

  bool moving() const { return moving_; }
  bool is_users(const std::exception_ptr& thrown) {
    const std::lock_guard lock(mutex_);
    return std::any_of(engines_.begin(), engines_.end(), [&](const Progress* e) { return thrown && e->users_ == thrown; });
  }
  void rethrow_users() {
    std::unique_lock lock(mutex_);
    for (Progress* const e : engines_)
      if (const std::exception_ptr users = e->users_) {  // and stays there: who hears of it may be a request's destructor
        lock.unlock();
        std::rethrow_exception(users);
      }
  }

 private:
  struct Holder {
    Holder() { Progress::here_ = engines.get(); }
    ~Holder() { Progress::here_ = nullptr; }
    std::shared_ptr<EnginesOfThread> engines = std::make_shared<EnginesOfThread>();
  };
  /// The first engine from place `i` on with something to move, which stays until it has moved.
  Progress* take(std::size_t& i, const Progress* waiting) {
    const std::lock_guard lock(mutex_);
    for (; i < engines_.size(); ++i)
      if (Progress* const e = engines_[i]; e != waiting && e->under_way()) {
        e->moves_.store(true, std::memory_order_relaxed);
        return e;
      }
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<Progress*> engines_;
  std::atomic<std::size_t> count_{0};
  bool moving_ = false;  // of the thread alone
};
}  // namespace detail

SKEIN_INLINE bool Progress::move_others(const Progress* waiting) { return here_ && here_->move_others(waiting); }

SKEIN_INLINE std::chrono::nanoseconds Progress::nap(const Progress* waiting, std::chrono::nanoseconds longest) {
  constexpr std::chrono::nanoseconds shortly = std::chrono::microseconds(200);
  return longest > shortly && here_ && here_->any_beside(waiting) ? shortly : longest;
}

SKEIN_INLINE bool Progress::moving() { return here_ && here_->moving(); }

SKEIN_INLINE void Progress::throw_failed(const std::string& message) {
  if (here_) here_->rethrow_users();
  throw CommError(message);
}

SKEIN_INLINE bool Progress::is_users(const std::exception_ptr& thrown) { return here_ && here_->is_users(thrown); }

SKEIN_INLINE void Progress::leave_thread() noexcept {
  if (const auto engines = std::exchange(of_thread_, nullptr)) engines->remove(this);
}

SKEIN_INLINE void Progress::join_thread() {
  if (const auto engines = detail::EnginesOfThread::here(); engines && engines != of_thread_) {
    leave_thread();
    engines->add(this);
    of_thread_ = engines;
  }
}

SKEIN_INLINE void Progress::rethrow_users() {
  if (const std::exception_ptr users = std::exchange(users_, nullptr)) std::rethrow_exception(users);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
