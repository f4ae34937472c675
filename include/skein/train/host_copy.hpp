// SPDX-License-Identifier: Apache-2.0
// A device's values for the host to read, or to be read from a file: where the memory is the host's, itself; else a copy, whose
// memory is kept for the next.
#pragma once
#include <algorithm>
#include <cstddef>

#include "../device/copy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// HostCopy<float, Device> copy;  const float* p = copy.read(span.data, span.size, where);
template <class T, class Device> class HostCopy {
 public:
  /// n values from there, as they are when all that this thread has given to the device is done. Waits for it.
  const T* read(const T* from, std::size_t n, Device where) {
    if constexpr (on_host<Device>) {
      return from;
    } else {
      if (memory_.size() < n) memory_ = Arena<T>(n);
      Copy<Cpu, Device>::run(memory_.data(), from, n * sizeof(T), Cpu{}, where);
      return memory_.data();
    }
  }
  /// n values from the host's memory to there.
  static void write(T* to, const T* from, std::size_t n, Device where) {
    Copy<Device, Cpu>::run(to, from, n * sizeof(T), where, Cpu{});
  }

 private:
  Arena<T> memory_;
};

}  // namespace skein::inline SKEIN_ABI::train
