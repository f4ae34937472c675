// SPDX-License-Identifier: Apache-2.0
// Starts MPI if nobody has, finalises what it started, and sees that an exception which nobody catches ends all ranks with its
// message instead of leaving them to wait.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "api.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Prints "rank r: message" and ends the whole job.
[[noreturn]] void abort_all(const std::string& message);

/// The handler of std::terminate: the message of the exception that nobody caught goes to all.
[[noreturn]] void terminate_all();

/// MPI from the first MpiComm{argc, argv} on.
class MpiSession {
 public:
  MpiSession() = default;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Asks for MPI_THREAD_FUNNELED where MPI does not run yet.
  void start(int& argc, char**& argv);
  bool owns() const { return owns_; }
  void finish();

 private:
  bool owns_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED_MPI
#include "session.ipp"
#endif
