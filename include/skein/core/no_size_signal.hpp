// SPDX-License-Identifier: Apache-2.0
// A write beyond the limit of file sizes (ulimit -f) is an error like others, and not the end of the process. For what writes
// files.
#pragma once
#include <cerrno>
#include <csignal>
#include <ctime>

#include "config.hpp"

namespace skein::inline SKEIN_ABI::detail {

/// While it lives a write beyond the limit of file sizes fails with EFBIG, and sends this thread no SIGXFSZ.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    ::sigemptyset(&size_);
    ::sigaddset(&size_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &size_, &before_);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  ~NoSizeSignal() {
    const int error = errno;
    const timespec at_once{};
    if (::sigismember(&before_, SIGXFSZ) == 0)
      while (::sigtimedwait(&size_, nullptr, &at_once) > 0) {}
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t size_, before_;
};

}  // namespace skein::inline SKEIN_ABI::detail
