// SPDX-License-Identifier: Apache-2.0
// A contiguous run of values on a device: what collectives, optimizers and copies take. Does not own.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>

#include "../core/error.hpp"
#include "device.hpp"

namespace skein::inline SKEIN_ABI {

/// `size` values at `data`, in memory of Device that somebody else owns.
template <class T, DeviceTag Device = Cpu> struct DeviceSpan {
  using value_type = std::remove_const_t<T>;
  using device = Device;
  T* data = nullptr;
  std::size_t size = 0;

  constexpr DeviceSpan() = default;
  constexpr DeviceSpan(T* first, std::size_t n) : data(first), size(n) {}
  constexpr DeviceSpan(std::span<T> s) requires std::same_as<Device, Cpu> : data(s.data()), size(s.size()) {}
  template <class U>
  requires(std::same_as<const U, T> && !std::is_const_v<U>) constexpr DeviceSpan(DeviceSpan<U, Device> s)
      : data(s.data), size(s.size) {}
  constexpr DeviceSpan sub(std::size_t begin, std::size_t end) const { return {data + begin, end - begin}; }

  constexpr T* begin() const requires std::same_as<Device, Cpu> { return data; }
  constexpr T* end() const requires std::same_as<Device, Cpu> { return data + size; }
  /// Checked in a debug build.
  constexpr T& operator[](std::size_t i) const requires std::same_as<Device, Cpu> {
    if (SKEIN_CHECKED && i >= size) detail::refuse_index(static_cast<long>(i), static_cast<long>(size));
    return data[i];
  }
};

}  // namespace skein::inline SKEIN_ABI
