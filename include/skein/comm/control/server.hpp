// SPDX-License-Identifier: Apache-2.0
// The coordinator: a thread in rank 0's process between the sockets of all ranks and the coordinator's state. It lives until
// every rank has said goodbye; a rank that waits for another is told, whatever that other does.
#pragma once
#include <atomic>
#include <thread>
#include <vector>

#include "../wait.hpp"
#include "coordinator_state.hpp"
#include "socket.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// Reads what has come; false where the other side has gone.
bool read_available(int fd, FrameReader& to);

/// The coordinator: one thread, in rank 0's process, that serves the connections of all ranks until each has said goodbye.
class Server {
 public:
  /// `ranks[r]` is the connection of rank r.
  explicit Server(std::vector<Descriptor> ranks);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Waits until all ranks have left, at most `timer` seconds (set by finish), and sends what is still to be sent.
  ~Server();
  /// This machine's address that a rank has connected to: the first that is no loopback; "" where none has come over a network.
  const std::string& host() const { return host_; }
  void finish(double timer) { timer_ = timer < 1e8 ? timer : 1e8; }  // it ends at once where a rank is gone

 private:
  struct Peer {
    Descriptor fd;
    FrameReader reader;
    std::string out;
    bool open = true;
  };

  void serve();
  void serve_until_the_end();
  void receive(int rank);
  void deliver();
  void flush(Peer& p);
  bool all_flushed() const;

  CoordinatorState coordinator_state_;
  std::vector<Peer> peers_;
  std::string host_;
  Descriptor wake_, woken_;
  AwakeClock clock_{0.5};                  // of what is due
  std::atomic<double> stop_within_{1e18};  // seconds
  double timer_ = 5;
  std::thread thread_;
};

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "server.ipp"
#endif
