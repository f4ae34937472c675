// SPDX-License-Identifier: Apache-2.0
// OneThread: an object whose calls share memory belongs to one thread at a time. A second one is told so, where it would else
// calculate with the first one's samples.
#pragma once
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "error.hpp"

namespace skein::inline SKEIN_ABI {

/// Which thread is within a call of an object, and whether the object is still there: the new one of a copy or a move is fresh,
/// nobody is within it; that which was moved from is gone, until another is assigned to it.
class OneThread {
 public:
  OneThread() = default;
  OneThread(const OneThread&) {}
  OneThread(OneThread&& o) noexcept : gone_(std::exchange(o.gone_, true)) {}
  OneThread& operator=(const OneThread&) { return *this; }
  OneThread& operator=(OneThread&& o) noexcept {
    gone_ = std::exchange(o.gone_, true);
    return *this;
  }

  /// Throws ArgumentError where the object was moved from.
  void check_there() const {
    if (gone_) throw ArgumentError("this object was moved from, and has nothing: use the one that it was moved to");
  }

  /// A call of the object, by its public name; calls within calls are allowed. Throws ArgumentError where another thread is in
  /// one.
  class [[nodiscard]] Call {
   public:
    Call(OneThread& object, std::string_view name, std::string_view remedy) : object_(object) {
      object.check_there();
      std::thread::id inside{};
      outermost_ = object.inside_.compare_exchange_strong(inside, std::this_thread::get_id(), std::memory_order_acquire);
      if (!outermost_ && inside != std::this_thread::get_id())
        throw ArgumentError(std::string(name) +
                            ": another thread is within a call of this object, whose calls share memory: " + std::string(remedy));
    }
    Call(const Call&) = delete;
    ~Call() {
      if (outermost_) object_.inside_.store({}, std::memory_order_release);
    }

   private:
    OneThread& object_;
    bool outermost_ = false;
  };

 private:
  std::atomic<std::thread::id> inside_{};
  bool gone_ = false;
};

}  // namespace skein::inline SKEIN_ABI
