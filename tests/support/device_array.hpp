// SPDX-License-Identifier: Apache-2.0
// An array on the device for .cu tests: filled from the host, read back, with canaries behind it and where wanted off the 16
// bytes that kernels like.
#pragma once
#include <catch2/catch.hpp>
#include <vector>

#include <skein/device/cuda/memory.hpp>

namespace support {

template <class T> class DeviceArray {
 public:
  /// `shift`: values by which the array begins later than its memory.
  explicit DeviceArray(const std::vector<T>& values, long shift = 0)
      : size_(values.size()), shift_(static_cast<std::size_t>(shift)), memory_(size_ + shift_ + margin) {
    std::vector<T> all(shift_ + size_ + margin, static_cast<T>(77.0f));
    for (std::size_t i = 0; i < size_; ++i) all[shift_ + i] = values[i];
    skein::Copy<skein::Cuda, skein::Cpu>::run(memory_.data(), all.data(), all.size() * sizeof(T));
  }
  DeviceArray(std::size_t n, T value, long shift = 0) : DeviceArray(std::vector<T>(n, value), shift) {}

  T* data() { return memory_.data() + shift_; }
  const T* data() const { return memory_.data() + shift_; }
  /// On the host; what lies around it must be untouched.
  std::vector<T> host() const {
    std::vector<T> all(shift_ + size_ + margin);
    skein::Copy<skein::Cpu, skein::Cuda>::run(all.data(), memory_.data(), all.size() * sizeof(T));
    for (std::size_t i = 0; i < shift_; ++i) CHECK(static_cast<float>(all[i]) == 77);
    for (std::size_t i = 0; i < margin; ++i) CHECK(static_cast<float>(all[shift_ + size_ + i]) == 77);
    return {all.begin() + static_cast<long>(shift_), all.begin() + static_cast<long>(shift_ + size_)};
  }

 private:
  static constexpr std::size_t margin = 9;
  std::size_t size_, shift_;
  skein::Arena<T, skein::Cuda> memory_;
};

}  // namespace support
