// SPDX-License-Identifier: Apache-2.0
// Stream sockets with owners and deadlines: no call here blocks for longer than it is told. Addresses are "host:port", or
// "[::1]:port".
#pragma once
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../launch/local_devices.hpp"
#include "../wait.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// Seconds on a clock that only goes forward.
inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A host, by name or number, and a TCP port.
struct Address {
  std::string host;
  int port = 0;
  std::string text() const;
};

/// Throws ArgumentError for what is no "host:port".
Address parse_address(const std::string& text);

/// Makes a socket non-blocking and closed in child processes; a TCP socket also sends small messages at once.
void set_flags(int fd);

/// Two connected ends, within a process or between a process and its child.
std::pair<Descriptor, Descriptor> connected_pair();

/// Another program has the port.
class PortTaken : public CommError {
 public:
  explicit PortTaken(const std::string& what) : CommError(what) {}  // nvcc 13 stumbles over an inherited constructor here
};

/// Listens on a port of the interface that the address names: of the loopback for localhost, of every interface for 0.0.0.0 and
/// ::, and where the address is none of this machine's (a public address that is translated to its own), or is a host's name that
/// this machine itself takes for its loopback (Debian's /etc/hosts), which others do not. Port 0 takes a free one.
class Listener {
 public:
  /// Throws PortTaken, or CommError.
  explicit Listener(const Address& at);
  int get() const { return fd_.get(); }
  int port() const { return port_; }
  /// Only this machine can connect.
  bool loopback() const { return loopback_; }
  /// Where it listens.
  const std::string& interface() const { return interface_; }
  /// Who has come; an empty one, and errno, where nobody has.
  Descriptor accept() const;

 private:
  bool bind_to(const sockaddr* to, socklen_t length);
  Descriptor fd_;
  int port_ = 0;
  bool loopback_ = false;
  std::string interface_;
};

/// The other side's address, without its port; "" where the system does not say.
std::string peer_host(const Descriptor& d);
/// This side's address, without its port; "" where the socket is of no network.
std::string own_host(const Descriptor& d);
/// An address that only its own machine reaches.
bool is_loopback(const std::string& host);
/// The other side has not closed the connection.
bool is_open(const Descriptor& d);

/// Milliseconds of one poll() of a wait that has `left` seconds: so few that the clock of the wait counts them whole.
int poll_milliseconds(const Deadline& clock, double left);

/// Connects within `seconds` of a clock that runs; an empty one, and a reason, where that did not go.
Descriptor try_connect(const Address& to, double seconds, Deadline& clock, std::string& why);

/// Writes all within `seconds`; false where the other side has gone or takes nothing.
bool write_all(int fd, const std::string& bytes, double seconds);

/// The machine's own addresses that others may reach, then the loopback: "10.0.0.3", "127.0.0.1".
std::vector<std::string> own_hosts();

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "socket.ipp"
#endif
