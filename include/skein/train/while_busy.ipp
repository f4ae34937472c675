// SPDX-License-Identifier: Apache-2.0
// The bodies of while_busy.hpp.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "while_busy.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE void while_busy(const std::function<void()>& work, const std::function<bool(bool)>& any_is_busy) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
  } shared;
  const auto all = [&] {
    try {
      work();
    } catch (...) { shared.error = std::current_exception(); }
    const std::lock_guard lock(shared.mutex);
    shared.done = true;
    shared.changed.notify_all();
  };
  std::thread thread;
  try {
    thread = std::thread(all);
  } catch (const std::system_error&) { all(); }  // no more threads: the others wait for this rank in their sum
  struct Joined {
    std::thread& thread;
    ~Joined() {
      if (thread.joinable()) thread.join();
    }
  } joined{thread};
  for (bool busy = true; busy;) {
    {
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return shared.done; });
      busy = !shared.done;
    }
    busy = any_is_busy(busy);
  }
  if (thread.joinable()) thread.join();
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
