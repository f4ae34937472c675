// SPDX-License-Identifier: Apache-2.0
// A started collective or message: start, poll, wait. Holds no memory of its own: engines keep their calls in rings and pools
// that are made once, so that a training step allocates nothing.
#pragma once
#include <cstdint>
#include <exception>
#include <thread>  // std::chrono's durations as well: <chrono> itself brings streams
#include <utility>

#include "../core/clock.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// Names a call inside its engine: a collective by its number, a message by its place in the pool.
struct Ticket {
  std::uint64_t number = 0;
  std::int32_t message = -1;
  std::int32_t peer = -1;
};
}  // namespace comm

/// What start_all_reduce, isend and their like return. Move-only. The buffers belong to the call until it is done; a request
/// that is destroyed before waits (while an exception passes through, it ends the communicator instead: others are told).
template <class Engine> class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Engine& engine, comm::Ticket ticket) : engine_(&engine), ticket_(ticket), uncaught_(std::uncaught_exceptions()) {}
  Request(Request&& o) noexcept : engine_(std::exchange(o.engine_, nullptr)), ticket_(o.ticket_), uncaught_(o.uncaught_) {}
  Request& operator=(Request&& o) noexcept {
    std::swap(engine_, o.engine_);
    std::swap(ticket_, o.ticket_);
    std::swap(uncaught_, o.uncaught_);
    return *this;
  }
  ~Request() {
    if (!engine_) return;
    try {
      if (std::uncaught_exceptions() > uncaught_) engine_->abandon();
      else engine_->wait(ticket_);
    } catch (...) {  // the communicator has failed; its next call says so
    }
  }

  /// Makes progress without waiting; true once the call is complete. Throws CommError where the communicator has failed, or the
  /// message has another length; the call is over then.
  bool poll() {
    return ask([&](Engine& engine) { return engine.test(ticket_); });
  }
  /// Blocks until the call is complete. Throws CommError; names who is missing when the deadline passes.
  void wait() {
    if (Engine* engine = std::exchange(engine_, nullptr)) engine->wait(ticket_);
  }
  /// Waits at most so long; true once the call is complete. Throws as poll() does; that nobody comes is for the caller to see.
  bool wait_for(std::chrono::nanoseconds limit) {
    if constexpr (requires { engine_->wait_some(ticket_, limit); }) {
      return ask([&](Engine& engine) { return engine.wait_some(ticket_, limit); });
    } else {
      const double end = seconds_now() + std::chrono::duration<double>(limit).count();
      for (int turn = 0; !poll() && seconds_now() < end; ++turn) {
        if (turn < 200) std::this_thread::yield();
        else std::this_thread::sleep_for(std::chrono::microseconds(turn < 2000 ? 20 : 200));
      }
    }
    return engine_ == nullptr;
  }
  /// No call is in flight.
  bool done() const { return engine_ == nullptr; }
  /// The rank that sent the message of an irecv that is complete.
  int peer() const { return ticket_.peer; }

 private:
  /// Asks the engine whether the call is complete. An engine that throws has let go of the call, or has failed.
  template <class Complete> bool ask(const Complete& complete) {
    Engine* const engine = std::exchange(engine_, nullptr);
    if (engine && !complete(*engine)) engine_ = engine;
    return engine_ == nullptr;
  }

  Engine* engine_ = nullptr;
  comm::Ticket ticket_;
  int uncaught_ = 0;
};

}  // namespace skein::inline SKEIN_ABI
