// SPDX-License-Identifier: Apache-2.0
// A switch for kernels that exist twice: one value at a time, as they were written first, and with packs of 16 bytes and several
// loads under way a thread. The plain ones stay as twins until a GPU has run both; results agree but for the order of sums.
#pragma once
#include <atomic>

#include "../../core/environment.hpp"

namespace skein::inline SKEIN_ABI::cuda {

namespace detail {
inline std::atomic<bool>& plain_kernels_setting() {
  static std::atomic<bool> plain = environment_switch("SKEIN_PLAIN_KERNELS", false);
  return plain;
}
}  // namespace detail

/// Do the plain kernels run (environment: SKEIN_PLAIN_KERNELS=1)?
inline bool plain_kernels() { return detail::plain_kernels_setting().load(std::memory_order_relaxed); }

/// They run, or do not, while it lives; of all threads.
class PlainKernels {
 public:
  explicit PlainKernels(bool plain = true) : before_(detail::plain_kernels_setting().exchange(plain)) {}
  ~PlainKernels() { detail::plain_kernels_setting() = before_; }
  PlainKernels(const PlainKernels&) = delete;
  PlainKernels& operator=(const PlainKernels&) = delete;

 private:
  bool before_;
};

}  // namespace skein::inline SKEIN_ABI::cuda
