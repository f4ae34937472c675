// SPDX-License-Identifier: Apache-2.0
// gloo's connections between the ranks of one communicator: each rank with each other, over TCP. What gloo has of collectives is
// not used: its sums are not in the order of the ranks. A wait of gloo's cannot be polled, and one that takes too long breaks all
// connections, so whoever waits here is a thread of its own that waits without a limit, until abort().
#pragma once
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../control/control_comm.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// While one lives, a write of this thread to a connection that has ended, and of threads that it starts, is an error and not the
/// end of the process: gloo does not ask for that (SIGPIPE).
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  ~WithoutPipeSignal() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {}
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

/// The network interface of a process, which its communicators share: GLOO_SOCKET_IFNAME names it, else it is the first that
/// other machines may reach, or the loopback where all ranks are on one.
inline std::shared_ptr<gloo::transport::Device> gloo_device(bool one_machine) {
  const WithoutPipeSignal for_its_thread;
  gloo::transport::tcp::attr wanted;
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME")) wanted.iface = name;
  else wanted.hostname = one_machine ? "127.0.0.1" : control::own_hosts().front();
  try {
    return gloo::transport::tcp::CreateDevice(wanted);
  } catch (const std::exception& e) {
    throw CommError("gloo finds no network interface '" + wanted.iface + wanted.hostname + "' (" + e.what() +
                    "): set GLOO_SOCKET_IFNAME to one of `ip address`");
  }
}

/// Connections of a rank to all others. Used by several threads.
class GlooMesh {
 public:
  /// Bytes that go to a rank, or come from it.
  struct Part {
    int peer = 0;
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  using Buffer = gloo::transport::UnboundBuffer;
  /// What a thread that works on the connections does when it cannot go on: the message, and whether it is the cause; else it is
  /// that a connection has ended.
  using Failed = std::function<void(const std::string&, bool is_cause)>;

  /// Collective over the control's ranks, over which they tell each other where they listen; blocking.
  GlooMesh(ControlComm& control, std::shared_ptr<gloo::transport::Device> device)
      : device_(std::move(device)), context_(device_->createContext(control.rank(), control.size())) {
    const WithoutPipeSignal while_connecting;
    const auto limit = static_cast<long long>(1000 * std::min(1e6, control.deadline()));
    context_->setTimeout(std::chrono::milliseconds(std::max(1000LL, limit)));
    std::string own;  // where each of the others finds this rank
    for (int r = 0; r < control.size(); ++r) {
      if (r == control.rank()) continue;
      const std::vector<char> at = context_->createPair(r)->address().bytes();
      control::append_part(own, std::string_view(at.data(), at.size()));
    }
    const std::vector<std::string> all = control.all_gather(own);
    for (int r = 0; r < control.size(); ++r) {
      if (r == control.rank()) continue;
      std::string_view rest = all[static_cast<std::size_t>(r)], at;
      for (int i = 0; i <= control.rank() - (control.rank() > r ? 1 : 0); ++i) at = control::take_part(rest);
      context_->getPair(r)->connect({at.begin(), at.end()});
    }
  }
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  const std::shared_ptr<gloo::transport::Device>& device() const { return device_; }
  int rank() const { return context_->rank; }
  int size() const { return context_->size; }

  std::unique_ptr<Buffer> buffer(const void* data, std::size_t bytes) {
    return context_->createUnboundBuffer(const_cast<void*>(data), bytes);
  }
  /// Waits for what the buffer has been asked for. Throws CommError after abort(), gloo's exception where a connection has ended.
  void wait_sent(Buffer& b) {
    wait(b, [&] { return b.waitSend(forever()); });
  }
  /// Returns who sent.
  int wait_received(Buffer& b) {
    int from = -1;
    wait(b, [&] { return b.waitRecv(&from, forever()); });
    return from;
  }
  /// Sends and receives all of these; `slot` is of no other that is under way. Blocking. `came(rank)` says whose has come.
  template <class Came> void exchange(std::uint64_t slot, std::span<const Part> in, std::span<const Part> out, Came&& came) {
    std::vector<std::unique_ptr<Buffer>> received, sent;
    for (const Part& p : in) {
      received.push_back(buffer(p.data, p.bytes));
      if (p.bytes) received.back()->recv(p.peer, slot);
    }
    for (const Part& p : out) {
      sent.push_back(buffer(p.data, p.bytes));
      if (p.bytes) sent.back()->send(p.peer, slot);
    }
    try {
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (in[i].bytes) wait_received(*received[i]);
        came(in[i].peer);
      }
      for (std::size_t i = 0; i < out.size(); ++i)
        if (out[i].bytes) wait_sent(*sent[i]);
    } catch (...) {
      for (std::size_t i = 0; aborted() && i < in.size(); ++i)  // those behind the one that has not come may have
        if (in[i].bytes && has_come(*received[i])) came(in[i].peer);
      throw;
    }
  }

  /// Ends all waits: nothing is received or sent any more.
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    for (Buffer* b : waiting_) b->abortWaitRecv(), b->abortWaitSend();
  }
  bool aborted() {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  static std::chrono::milliseconds forever() { return std::chrono::hours(24 * 365); }
  static bool has_come(Buffer& b) {
    try {
      return b.waitRecv(nullptr, std::chrono::milliseconds(1));
    } catch (const std::exception&) { return false; }
  }
  template <class Wait> void wait(Buffer& b, Wait&& until_done) {
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw CommError("this communicator has been aborted");
      waiting_.push_back(&b);
    }
    const auto forget = [&] {
      const std::lock_guard lock(mutex_);
      std::erase(waiting_, &b);
    };
    bool done = false;
    try {
      done = until_done();
    } catch (...) {
      forget();
      throw;
    }
    forget();
    if (!done) throw CommError("this communicator has been aborted");
  }

  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::mutex mutex_;
  std::vector<Buffer*> waiting_;
  bool aborted_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm
