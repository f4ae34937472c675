// SPDX-License-Identifier: Apache-2.0
// The bodies of server.hpp.
#pragma once
#include <exception>
#include <utility>

#include "server.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE Server::Server(std::vector<Descriptor> ranks) : coordinator_state_(static_cast<int>(ranks.size())) {
  for (Descriptor& d : ranks) {
    if (host_.empty() || is_loopback(host_)) {
      const std::string host = own_host(d);
      if (!host.empty()) host_ = host;
    }
    peers_.emplace_back().fd = std::move(d);
    peers_.back().reader.trust();
  }
  auto [in, out] = connected_pair();
  wake_ = std::move(in);
  woken_ = std::move(out);
  thread_ = std::thread([this] { serve(); });
}

SKEIN_INLINE Server::~Server() {
  stop_within_.store(timer_);
  (void)write_all(wake_.get(), "x", 1);
  thread_.join();
}

/// Milliseconds until something is due; at most 200, which the clock sees as what they are. -1: nothing will be.
inline int longest_wait(double seconds) {
  return seconds > 1e17 ? -1 : static_cast<int>(std::min(200.0, std::max(0.0, 1000 * seconds) + 1));
}

SKEIN_INLINE void Server::serve() {
  bool told = false;
  while (true) {
    try {
      return serve_until_the_end();
    } catch (const std::exception& e) {  // this thread must not end the process: all ranks are told, once
      if (!std::exchange(told, true) && !coordinator_state_.failed()) {
        coordinator_state_.take(0, {Kind::Fail, 0, 0, 0, std::string("the coordinator failed: ") + e.what()}, clock_.now());
        continue;
      }
      for (Peer& p : peers_) p.open = false, p.fd = Descriptor();
      return;
    }
  }
}

SKEIN_INLINE void Server::serve_until_the_end() {
  std::vector<pollfd> polled(peers_.size() + 1);
  double stop = 1e18;
  while (true) {
    deliver();
    const double t = clock_.now(), within = stop_within_.load();
    if (within < 1e17 && stop > 1e17) stop = t + within;
    const bool flushed = all_flushed();
    if (coordinator_state_.all_left() && flushed) return;
    if (stop < 1e17 && ((coordinator_state_.failed() && flushed) || t >= stop)) return;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      polled[i] = {peers_[i].open ? peers_[i].fd.get() : -1, static_cast<short>(POLLIN | (peers_[i].out.empty() ? 0 : POLLOUT)),
                   0};
    polled.back() = {woken_.get(), POLLIN, 0};
    (void)::poll(polled.data(), polled.size(), longest_wait(std::min(coordinator_state_.next_due(), stop) - t));
    if (polled.back().revents) {
      char some[16];
      (void)!::read(woken_.get(), some, sizeof some);
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (polled[i].fd < 0) continue;
      if (polled[i].revents & POLLOUT) flush(peers_[i]);
      if (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) receive(static_cast<int>(i));
    }
    coordinator_state_.tick(clock_.now());
  }
}

SKEIN_INLINE bool read_available(int fd, FrameReader& to) {
  char bytes[65536];
  ssize_t n = 0;
  while ((n = ::recv(fd, bytes, sizeof bytes, 0)) > 0) to.add(bytes, static_cast<std::size_t>(n));
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

SKEIN_INLINE void Server::receive(int rank) {
  Peer& p = peers_[static_cast<std::size_t>(rank)];
  bool ended = !read_available(p.fd.get(), p.reader);
  try {
    while (std::optional<Frame> f = p.reader.next()) coordinator_state_.take(rank, std::move(*f), clock_.now());
  } catch (const Error& e) {
    coordinator_state_.take(rank, {Kind::Fail, 0, 0, 0, text("the coordinator cannot understand rank {}: {}", rank, e.what())},
                            clock_.now());
    deliver();  // this rank hears it too, before its connection is closed
    ended = true;
  }
  if (!ended) return;
  p.open = false;
  p.fd = Descriptor();
  coordinator_state_.lost(rank);
}

SKEIN_INLINE void Server::deliver() {
  for (auto& [rank, frame] : coordinator_state_.output()) {
    Peer& p = peers_[static_cast<std::size_t>(rank)];
    if (!p.open) continue;
    p.out += encode(frame);
    flush(p);
  }
}

SKEIN_INLINE void Server::flush(Peer& p) {
  std::size_t at = 0;
  while (at < p.out.size()) {
    const ssize_t n = ::send(p.fd.get(), p.out.data() + at, p.out.size() - at, MSG_NOSIGNAL);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  p.out.erase(0, at);
}

SKEIN_INLINE bool Server::all_flushed() const {
  for (const Peer& p : peers_)
    if (p.open && !p.out.empty()) return false;
  return true;
}

}  // namespace skein::inline SKEIN_ABI::comm::control
