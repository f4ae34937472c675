// SPDX-License-Identifier: Apache-2.0
// The bodies of socket.hpp.
#pragma once
#include <algorithm>

#include "socket.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE Descriptor& Descriptor::operator=(Descriptor&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}

SKEIN_INLINE Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

SKEIN_INLINE std::string Address::text() const {
  return skein::text("{}:{}", (host.find(':') == std::string::npos ? host : "[" + host + "]"), port);
}

SKEIN_INLINE Address parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address a;
  if (colon != std::string::npos) {
    a.host = text.substr(0, colon);
    if (a.host.size() > 2 && a.host.front() == '[' && a.host.back() == ']') a.host = a.host.substr(1, a.host.size() - 2);
    a.port = comm::launch::parse_count(std::string_view(text).substr(colon + 1)).value_or(0);
  }
  if (a.host.empty() || a.host.find_first_of("[] /") != std::string::npos || a.port < 1 || a.port > 65535)
    throw ArgumentError("'" + text + "' is no address: give host:port, a port from 1 to 65535");
  return a;
}

SKEIN_INLINE void set_flags(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // no TCP socket: no harm
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

SKEIN_INLINE std::pair<Descriptor, Descriptor> connected_pair() {
  int fd[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0) throw CommError(std::string("socketpair failed: ") + std::strerror(errno));
  set_flags(fd[0]);
  set_flags(fd[1]);
  return {Descriptor(fd[0]), Descriptor(fd[1])};
}

SKEIN_INLINE bool is_loopback(const std::string& host) { return host.rfind("127.", 0) == 0 || host == "::1"; }

namespace detail {
inline std::string host_text(const sockaddr* a) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* const bytes = a->sa_family == AF_INET6
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr)
                                : &reinterpret_cast<const sockaddr_in*>(a)->sin_addr;
  return ::inet_ntop(a->sa_family, bytes, text, sizeof text) ? text : "";
}

/// The addresses that a host has, those of IPv4 first; every interface's where it names none.
inline std::vector<sockaddr_storage> addresses_to_bind(const Address& at) {
  std::vector<sockaddr_storage> found, sixth;
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  bool reachable = at.host == "localhost";
  if (::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &list) == 0) {
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(list, &::freeaddrinfo);
    for (const addrinfo* a = list; a; a = a->ai_next) {
      if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
      const std::string host = host_text(a->ai_addr);
      reachable = reachable || !is_loopback(host) || host == at.host || at.host.rfind("127.", 0) == 0;
      std::memcpy(&(a->ai_family == AF_INET ? found : sixth).emplace_back(), a->ai_addr, a->ai_addrlen);
    }
  }
  found.insert(found.end(), sixth.begin(), sixth.end());
  if (!reachable) found.clear();
  return found;
}
}  // namespace detail

SKEIN_INLINE bool Listener::bind_to(const sockaddr* to, socklen_t length) {
  fd_ = Descriptor(::socket(to->sa_family, SOCK_STREAM, 0));
  if (!fd_) return false;
  set_flags(fd_.get());
  int on = 1;
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return ::bind(fd_.get(), to, length) == 0 && ::listen(fd_.get(), 1024) == 0;
}

SKEIN_INLINE Listener::Listener(const Address& at) {
  bool listens = false;
  errno = EADDRNOTAVAIL;
  for (const sockaddr_storage& a : detail::addresses_to_bind(at)) {
    listens =
        bind_to(reinterpret_cast<const sockaddr*>(&a), a.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (listens || (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)) break;
  }
  if (!listens && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(at.port));
    any.sin_addr.s_addr = htonl(INADDR_ANY);
    listens = bind_to(reinterpret_cast<const sockaddr*>(&any), sizeof any);
  }
  if (!listens) {
    const std::string text = "listening on " + at.text() + " failed: " + std::strerror(errno);
    if (errno != EADDRINUSE) throw CommError(text);
    throw PortTaken(text + ". Another program has this port, perhaps an earlier run or another job: take another");
  }
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&own), &length);
  port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
  interface_ = detail::host_text(reinterpret_cast<const sockaddr*>(&own));
  loopback_ = is_loopback(interface_);
}

SKEIN_INLINE std::string peer_host(const Descriptor& d) {
  sockaddr_storage other{};
  socklen_t length = sizeof other;
  if (::getpeername(d.get(), reinterpret_cast<sockaddr*>(&other), &length) != 0) return "";
  return other.ss_family == AF_INET || other.ss_family == AF_INET6 ? detail::host_text(reinterpret_cast<const sockaddr*>(&other))
                                                                   : "";
}

SKEIN_INLINE std::string own_host(const Descriptor& d) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(d.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return "";
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return "";
  std::string host = detail::host_text(reinterpret_cast<const sockaddr*>(&own));
  if (host.rfind("::ffff:", 0) == 0 && host.find('.') != std::string::npos) return host.substr(7);  // IPv4 through IPv6's socket
  char name[IF_NAMESIZE] = "";
  const bool of_link = own.ss_family == AF_INET6 && reinterpret_cast<const sockaddr_in6&>(own).sin6_scope_id != 0;
  if (of_link && ::if_indextoname(reinterpret_cast<const sockaddr_in6&>(own).sin6_scope_id, name))
    host += std::string("%") + name;
  return host;
}

SKEIN_INLINE bool is_open(const Descriptor& d) {
  char one = 0;
  const ssize_t n = ::recv(d.get(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

SKEIN_INLINE Descriptor Listener::accept() const {
  Descriptor d(::accept(fd_.get(), nullptr, nullptr));
  if (d) set_flags(d.get());
  return d;
}

SKEIN_INLINE int poll_milliseconds(const Deadline& clock, double left) {
  return 1 + static_cast<int>(1000 * std::max(0.0, std::min({left, 0.2, clock.limit() / 8})));
}

namespace detail {
/// Waits until a connection that is under way is made, or is not: its error, 0 for none.
inline int connection_error(const Descriptor& d, double seconds, Deadline& clock) {
  pollfd p{d.get(), POLLOUT, 0};
  int ready = 0, error = ETIMEDOUT;
  for (double end = clock.waited() + seconds, left = seconds; ready <= 0 && left > 0; left = end - clock.waited())
    ready = ::poll(&p, 1, poll_milliseconds(clock, left));
  socklen_t length = sizeof error;
  if (ready > 0) ::getsockopt(d.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}
}  // namespace detail

SKEIN_INLINE Descriptor try_connect(const Address& to, double seconds, Deadline& clock, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int wrong =
      clock.count_whole([&] { return ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found); });
  if (wrong != 0) {
    why = ::gai_strerror(wrong);
    return {};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
  const double end = clock.waited() + seconds;
  int left = 0;
  for (const addrinfo* a = found; a; a = a->ai_next) ++left;
  for (const addrinfo* a = found; a;
       a = a->ai_next, --left) {  // each gets its part: one that never answers leaves the others time
    Descriptor d(::socket(a->ai_family, a->ai_socktype, a->ai_protocol));
    if (!d) continue;
    set_flags(d.get());
    int error = 0;
    if (::connect(d.get(), a->ai_addr, a->ai_addrlen) != 0) {
      error = errno;
      if (error == EINPROGRESS) error = detail::connection_error(d, (end - clock.waited()) / left, clock);
    }
    if (error == 0) return d;
    why = std::strerror(error);
  }
  return {};
}

SKEIN_INLINE bool write_all(int fd, const std::string& bytes, double seconds) {
  Deadline clock =
      Deadline::from_now(seconds);  // a half of a frame is none: time in which this process was stopped does not count
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n > 0) {
      at += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
    const double left = clock.left();
    if (left <= 0) return false;
    pollfd p{fd, POLLOUT, 0};
    (void)::poll(&p, 1, poll_milliseconds(clock, left));
  }
  return true;
}

SKEIN_INLINE std::vector<std::string> own_hosts() {
  std::vector<std::string> hosts;
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) == 0) {
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(found, &::freeifaddrs);
    for (const ifaddrs* i = found; i; i = i->ifa_next) {
      if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
      char text[INET_ADDRSTRLEN] = "";
      if (::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text) &&
          std::strncmp(text, "127.", 4) != 0)
        hosts.push_back(text);
    }
  }
  hosts.push_back("127.0.0.1");
  return hosts;
}

}  // namespace skein::inline SKEIN_ABI::comm::control
