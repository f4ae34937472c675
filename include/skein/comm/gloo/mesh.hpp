// SPDX-License-Identifier: Apache-2.0
// gloo's connections between the ranks of one communicator: each rank with each other, over TCP. What gloo has of collectives is
// not used: its sums are not in the order of the ranks. A wait of gloo's cannot be polled, and one that takes too long breaks all
// connections, so whoever waits here is a thread of its own that waits without a limit, until abort().
#pragma once
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
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

/// Where the others reach rank `rank`: at its address in the network over which the ranks met. Who met rank 0 over the loopback
/// is on its machine, and has its address.
inline std::string gloo_host(const std::vector<std::string>& hosts, int rank) {
  const auto of = [&](int r) { return hosts[static_cast<std::size_t>(r)]; };
  const auto is_local = [](const std::string& host) { return host.empty() || control::is_loopback(host); };
  const std::string host = is_local(of(rank)) ? of(0) : of(rank);
  return host.empty() ? "127.0.0.1" : host;
}

/// The network interface of a process, which its communicators share: GLOO_SOCKET_IFNAME names it, else it is that of gloo_host,
/// or the loopback where all ranks are on one machine. Collective.
inline std::shared_ptr<gloo::transport::Device> gloo_device(ControlComm& control, bool one_machine) {
  const WithoutPipeSignal for_its_thread;
  gloo::transport::tcp::attr wanted;
  const std::string host =
      one_machine ? "127.0.0.1" : gloo_host(control.all_gather(control.engine().client().host()), control.rank());
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME")) wanted.iface = name;
  else wanted.hostname = host;
  try {
    return gloo::transport::tcp::CreateDevice(wanted);
  } catch (const std::exception& e) {
    throw CommError("gloo finds no network interface '" + wanted.iface + wanted.hostname + "' (" + e.what() +
                    "): set GLOO_SOCKET_IFNAME to one of `ip address`");
  }
}

/// The connection to a rank has ended.
class ConnectionEnded : public CommError {
 public:
  ConnectionEnded(int peer, const std::string& why) : CommError(why), peer_(peer) {}
  int peer() const { return peer_; }

 private:
  int peer_;
};

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
  static constexpr std::size_t largest_piece = std::size_t{64} << 20;

  /// Collective over the control's ranks, over which they tell each other where they listen; blocking. `piece`: bytes, on all
  /// ranks the same; what is longer goes in pieces, so that moved() sees it move.
  GlooMesh(ControlComm& control, std::shared_ptr<gloo::transport::Device> device, std::size_t piece = largest_piece)
      : device_(std::move(device)), piece_(std::clamp<std::size_t>(piece, 4096, largest_piece)),
        names_(control.engine().rank_names()), context_(device_->createContext(control.rank(), control.size())) {
    const WithoutPipeSignal while_connecting;      // the thread that connects inherits it
    context_->setTimeout(std::chrono::hours(24));  // connect() has a limit of its own
    std::string own;                               // where each of the others finds this rank
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
      addresses_.emplace_back(r, std::vector<char>(at.begin(), at.end()));
    }
    connect(control);
    control.barrier();  // gloo ends a process by std::terminate where a connection ends that it is about to accept
  }
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  const std::shared_ptr<gloo::transport::Device>& device() const { return device_; }
  int rank() const { return context_->rank; }
  int size() const { return context_->size; }
  const RankNames& names() const { return names_; }

  /// What is said of a connection that has ended while both ranks live.
  std::string ended_text(int with, const char* why) const {
    return "the connection of " + names_.name(rank()) + " with " + names_.name(with) + " has ended (" + why +
           "): look at the network between them";
  }
  std::unique_ptr<Buffer> buffer(const void* data, std::size_t bytes) {
    return context_->createUnboundBuffer(const_cast<void*>(data), bytes);
  }
  /// All these bytes to a rank, or from it; `slot` is of no other that is under way. Blocking. Throws as a wait does.
  void send(int to, std::uint64_t slot, const void* data, std::size_t bytes) {
    const auto b = buffer(data, bytes);
    each_piece(bytes, [&](std::size_t at, std::size_t n) { b->send(to, slot, at, n), wait_sent(*b), ++parts_; });
  }
  void receive(int from, std::uint64_t slot, void* data, std::size_t bytes) {
    const auto b = buffer(data, bytes);
    each_piece(bytes, [&](std::size_t at, std::size_t n) { b->recv(from, slot, at, n), wait_received(*b), ++parts_; });
  }
  /// Waits for what the buffer has been asked for. Throws CommError after abort(), gloo's exception where a connection has ended.
  void wait_sent(Buffer& b) {
    wait(b, [&] { return b.waitSend(forever()); });
  }
  void wait_received(Buffer& b) {
    wait(b, [&] { return b.waitRecv(nullptr, forever()); });
  }
  /// Sends and receives all of these; `slot` is of no other that is under way. Blocking. `came(rank)` says whose has come.
  /// Throws ConnectionEnded, or CommError after abort().
  template <class Came> void exchange(std::uint64_t slot, std::span<const Part> in, std::span<const Part> out, Came&& came) {
    std::vector<std::unique_ptr<Buffer>> received, sent;
    for (const Part& p : in) {
      received.push_back(buffer(p.data, p.bytes));
      with(p.peer, [&] { each_piece(p.bytes, [&](auto at, auto n) { received.back()->recv(p.peer, slot, at, n); }); });
    }
    for (const Part& p : out) {
      sent.push_back(buffer(p.data, p.bytes));
      with(p.peer, [&] { each_piece(p.bytes, [&](auto at, auto n) { sent.back()->send(p.peer, slot, at, n); }); });
    }
    try {
      for (std::size_t i = 0; i < in.size(); ++i) {
        with(in[i].peer, [&] { each_piece(in[i].bytes, [&](auto, auto) { wait_received(*received[i]), ++parts_; }); });
        came(in[i].peer);
      }
      for (std::size_t i = 0; i < out.size(); ++i)
        with(out[i].peer, [&] { each_piece(out[i].bytes, [&](auto, auto) { wait_sent(*sent[i]), ++parts_; }); });
    } catch (...) {
      for (std::size_t i = 0; aborted() && i < in.size(); ++i)  // those behind the one that has not come may have
        if (in[i].bytes && has_come(*received[i])) came(in[i].peer);
      throw;
    }
  }

  /// Pieces have come or gone since the last call. Of one thread.
  bool moved() {
    const std::uint64_t before = std::exchange(seen_, parts_.load());
    return before != seen_;
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
  /// gloo's connect waits for the other rank and sees nothing else: a thread does that, and this one sees the verdict, and the
  /// deadline, and closes what is not connected yet.
  void connect(ControlComm& control) {
    ControlEngine& engine = control.engine();
    std::exception_ptr wrong;
    std::atomic<int> with{0};
    std::promise<void> promise;
    const std::future<void> done = promise.get_future();
    std::thread thread([&] {
      try {
        for (const auto& [r, at] : addresses_) with = r, context_->getPair(r)->connect(at);
      } catch (...) { wrong = std::current_exception(); }
      promise.set_value();
    });
    auto timer = Deadline::from_now(control.deadline());
    bool connected = false;
    while (!connected && !engine.failed() && !timer.over())
      connected = done.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready;
    for (std::size_t i = 0; !connected && i < addresses_.size(); ++i) context_->getPair(addresses_[i].first)->close();
    thread.join();
    // Why a connection does not come about the coordinator knows better, if it does within a second.
    for (int i = 0; i < 100 && connected && wrong && !engine.failed(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    engine.check();
    if (connected && wrong) std::rethrow_exception(wrong);
    if (connected) return;
    engine.fail("gloo does not connect " + names_.name(control.rank()) + " with " + names_.name(with) + " within " +
                seconds_text(control.deadline()) +
                ": is the network between them open, and the one that GLOO_SOCKET_IFNAME names?");
    engine.check();
  }
  /// f(offset, bytes) of each piece.
  template <class F> void each_piece(std::size_t bytes, F&& f) const {
    for (std::size_t at = 0; at < bytes; at += piece_) f(at, std::min(piece_, bytes - at));
  }
  static std::chrono::milliseconds forever() { return std::chrono::hours(24 * 365); }
  template <class F> void with(int peer, F&& f) {
    try {
      f();
    } catch (const CommError&) { throw; } catch (const std::exception& e) {
      throw ConnectionEnded(peer, ended_text(peer, e.what()));
    }
  }
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
  std::size_t piece_;
  RankNames names_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<std::pair<int, std::vector<char>>> addresses_;  // of the others
  std::mutex mutex_;
  std::vector<Buffer*> waiting_;
  bool aborted_ = false;
  std::atomic<std::uint64_t> parts_{0};
  std::uint64_t seen_ = 0;  // of them
};

}  // namespace skein::inline SKEIN_ABI::comm
