// SPDX-License-Identifier: Apache-2.0
// The bodies of long_wait.hpp.
#pragma once
#include "long_wait.hpp"

#include <chrono>
#include <cstdio>
#include <string>

#include "../../core/text.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE LongWait::LongWait(const char* call, int rank, double seconds)
    : thread_([this, call, rank, seconds] {
        std::unique_lock lock(mutex_);
        for (double waited = 0, next = seconds; !over_; next *= 2) {
          const auto span = std::chrono::duration<double>(next - waited);
          if (ended_.wait_for(lock, span, [this] { return over_; })) return;
          waited = next;
          const std::string who = rank < 0 ? "a rank" : text("rank {}", rank);
          std::fprintf(stderr, "skein: %s has waited %g s in %s, a call of all ranks: one has not come to it, or has ended\n",
                       who.c_str(), waited, call);
        }
      }) {}

SKEIN_MPI_INLINE LongWait::~LongWait() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
