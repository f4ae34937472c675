// SPDX-License-Identifier: Apache-2.0
// WeightsUse: who uses the weights of a model just now. Many threads may predict with them at once, and one may train; a pass
// beside a training would read weights that are half of one step and half of the next.
#pragma once
#include <atomic>
#include <thread>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The one training and the passes of other threads, counted. Safe to be called by several threads.
class WeightsUse {
 public:
  /// A training by this thread. Waits for the passes of other threads; until it ends they begin none. Throws ArgumentError where
  /// another thread trains.
  class [[nodiscard]] Training {
   public:
    explicit Training(WeightsUse& use) : use_(use) {
      std::thread::id nobody{};
      if (!use.trainer_.compare_exchange_strong(nobody, std::this_thread::get_id())) {
        if (nobody != std::this_thread::get_id())
          throw ArgumentError("fit: another thread trains this model: give each training a model of its own");
        nested_ = true;
      }
      while (!nested_ && use.passes_.load() > 0) std::this_thread::yield();
    }
    Training(const Training&) = delete;
    ~Training() {
      if (!nested_) use_.trainer_.store({});
    }

   private:
    WeightsUse& use_;
    bool nested_ = false;
  };

  /// Passes that only read. Throws ArgumentError where another thread trains.
  class [[nodiscard]] Pass {
   public:
    explicit Pass(WeightsUse& use) : use_(use) {
      const auto trainer = [&] { return use.trainer_.load(); };
      own_ = trainer() == std::this_thread::get_id();
      if (own_) return;  // in a callback of the fit, which does not wait for itself
      ++use.passes_;
      if (trainer() == std::thread::id{}) return;
      --use.passes_;
      throw ArgumentError(
          "predict: another thread trains this model just now: predict in a callback of the fit, or with a second model, which "
          "loads the weights of a file");
    }
    Pass(const Pass&) = delete;
    ~Pass() {
      if (!own_) --use_.passes_;
    }

   private:
    WeightsUse& use_;
    bool own_ = false;
  };

 private:
  std::atomic<std::thread::id> trainer_{};
  std::atomic<int> passes_{0};
};

}  // namespace skein::inline SKEIN_ABI::nn
