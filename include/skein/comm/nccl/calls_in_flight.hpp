// SPDX-License-Identifier: Apache-2.0
// The newest calls of one rank on its device, each between two events, in a ring: nothing is allocated in a step.
#pragma once
#include <array>
#include <cstdint>

#include "../../device/cuda/stream.hpp"
#include "../control/watch.hpp"
#include "../request.hpp"
#include "../wait.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The calling thread may ask events of the device, also while another one captures.
inline void ask_events_from_here(Cuda device) {
  (void)cudaSetDevice(device.ordinal);           // else the first question makes a context on GPU 0, in every process
  static thread_local const bool relaxed = [] {  // another thread's capture is no reason to refuse an event query
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    return cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
  }();
  (void)relaxed;
}

/// Numbers count from 0, captured calls among them. The rank's own thread adds calls; what names the watch is called under the
/// engine's lock, by the watching thread too.
class CallsInFlight {
 public:
  static constexpr std::uint64_t most = 64;
  struct Call {
    cuda::Event begin, end;
    std::uint64_t watched = 0;               // its number in the watch
    bool recorded = false, captured = true;  // captured: nothing of it runs
  };

  /// Calls so far.
  std::uint64_t count() const { return count_; }
  Call& operator[](std::uint64_t number) { return calls_[number % most]; }
  /// Where the next call will be. Whoever takes it waits until the call that is there is done.
  Call& next() { return (*this)[count_]; }
  void take_next() { ++count_; }
  /// The place of this ticket's call has another one's events by now, or the ticket is of no call.
  bool reused(const Ticket& t) const { return t.number == 0 || t.number + most <= count_; }

  /// The call runs from now on. `name` in place of the signature's text, where it has one.
  void start(std::uint64_t number, const Signature& what, const char* name) {
    (*this)[number].watched = watch_.start(what, clock_.now(), name);
    running_[running_tail_++ % running_.size()] = static_cast<std::uint8_t>(number % most);
  }
  /// Calls that the device has done run no longer.
  void finish_done() {
    while (watch_.running()) {
      const Call& c = calls_[running_[running_head_ % running_.size()]];
      if (!c.recorded || !c.end.done()) return;
      ++running_head_;
      watch_.finish_oldest(clock_.now());
    }
  }
  /// The oldest call, once, when it has taken `limit` seconds.
  auto overdue(double limit) { return watch_.overdue(clock_.now(), limit); }
  control::CallWatch& watch() { return watch_; }

 private:
  std::array<Call, most> calls_;
  std::uint64_t count_ = 0;
  AwakeClock clock_{0.5};
  control::CallWatch watch_;
  std::array<std::uint8_t, 128> running_{};  // places of the calls of the watch
  std::uint64_t running_head_ = 0, running_tail_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
