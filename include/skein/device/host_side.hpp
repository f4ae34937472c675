// SPDX-License-Identifier: Apache-2.0
// HostSide: an array of a device as the host reads and writes it, for links that move bytes of the host: the array itself where
// the device is the host, else a copy of it there.
#pragma once
#include <algorithm>

#include "copy.hpp"

namespace skein::inline SKEIN_ABI {

/// The host's side of n values at `there`, which somebody else owns. On another device than the host both directions block.
template <class T, class Device> class HostSide {
 public:
  HostSide(T* there, std::size_t n, Device where = {}) : there_(there), size_(n), where_(where), copy_(on_host<Device> ? 0 : n) {}
  HostSide(DeviceSpan<T, Device> there, Device where) : HostSide(there.data, there.size, where) {}

  T* data() { return on_host<Device> ? there_ : copy_.data(); }
  std::size_t size() const { return size_; }
  /// The first n values, as they are there now, come to the host.
  void read(std::size_t n) {
    if constexpr (!on_host<Device>) Copy<Cpu, Device>::run(copy_.data(), there_, std::min(n, size_) * sizeof(T), Cpu{}, where_);
  }
  void read() { read(size_); }
  /// The first n values of the host go there.
  void write(std::size_t n) {
    if constexpr (!on_host<Device>) Copy<Device, Cpu>::run(there_, copy_.data(), std::min(n, size_) * sizeof(T), where_, Cpu{});
  }
  void write() { write(size_); }

 private:
  T* there_;
  std::size_t size_;
  [[no_unique_address]] Device where_;
  Arena<T> copy_;
};

}  // namespace skein::inline SKEIN_ABI
