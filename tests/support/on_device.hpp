// SPDX-License-Identifier: Apache-2.0
// A host array's copy on a device: made there, brought back by values().
//
//     support::OnDevice<float> x(host);   kernel(x.data());   std::vector<float> result = x.values();
#pragma once
#include <vector>

#include <skein/device/copy.hpp>

namespace support {

template <class T, class Device = skein::Cuda> class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& host) : there_(host.size()) {
    skein::Copy<Device, skein::Cpu>::run(there_.data(), host.data(), host.size() * sizeof(T));
  }
  /// n copies of a value.
  OnDevice(long n, T value) : OnDevice(std::vector<T>(static_cast<std::size_t>(n), value)) {}
  T* data() { return there_.data(); }
  std::vector<T> values() const {
    std::vector<T> host(there_.size());
    skein::Copy<skein::Cpu, Device>::run(host.data(), there_.data(), host.size() * sizeof(T));
    return host;
  }

 private:
  skein::Arena<T, Device> there_;
};

}  // namespace support
