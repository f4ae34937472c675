// SPDX-License-Identifier: Apache-2.0
// The memory of started MPI calls that cannot be cancelled. MPI may write to it as long as a call is not complete, and where a
// rank is gone that is for ever: then it is kept until the process ends, whatever becomes of those who asked for the call.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// Two buffers and the requests that work on them; never released while one of those is not complete.
class KeptBuffers {
 public:
  KeptBuffers() : held_(std::make_unique<Held>()) {}
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;
  ~KeptBuffers();

  /// Room for a call. What was there before is lost. Only between calls.
  void reserve(std::size_t in, std::size_t out);
  char* in() { return held_->in.data(); }
  char* out() { return held_->out.data(); }
  /// A place for the request of a message, or of a collective, that is about to start on in() and out().
  MPI_Request* next_request(bool collective = false);
  /// Places for `n` requests of messages, by their index; what was there before must be complete.
  void reserve_requests(std::size_t n);
  MPI_Request& request(std::size_t i) { return held_->requests[i]; }
  /// True once all that was started is complete. Throws MpiError.
  bool complete(const char* call) { return held_->requests.empty() || test_all(held_->requests, collective_, call); }

 private:
  struct Held {
    std::vector<char> in, out;
    std::vector<MPI_Request> requests;
  };
  // Never destroyed: MPI may be at work until the process ends.
  static std::vector<std::unique_ptr<Held>>& kept_for_ever();

  std::unique_ptr<Held> held_;
  bool collective_ = false;  // what was started last
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "kept_buffers.ipp"
#endif
