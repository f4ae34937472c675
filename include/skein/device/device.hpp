// SPDX-License-Identifier: Apache-2.0
// The device tags. The device is part of every tensor's type; the ordinal (which GPU) is a value.
#pragma once
#include <concepts>
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI {

/// The processor and its memory.
struct Cpu {
  static constexpr std::string_view name = "Cpu";
  static constexpr int ordinal = 0;
  friend constexpr bool operator==(Cpu, Cpu) { return true; }
};

/// A CUDA device by its ordinal. What it can do comes with skein/cuda.hpp.
struct Cuda {
  static constexpr std::string_view name = "Cuda";
  int ordinal = 0;
  friend constexpr bool operator==(Cuda, Cuda) = default;
};

/// Is the device's memory the host's: may it be read and written through a pointer?
template <class Device> inline constexpr bool on_host = std::same_as<Device, Cpu>;

template <class T> concept DeviceTag = std::same_as<T, Cpu> || std::same_as<T, Cuda>;

namespace detail {
template <class T> struct DeviceOf { using type = Cpu; };
template <class T>
requires requires { typename T::device; }
struct DeviceOf<T> {
  using type = typename T::device;
};
template <class T>
requires(!requires { typename T::device; } && DeviceTag<typename T::Device>) struct DeviceOf<T> {
  using type = typename T::Device;
};
}  // namespace detail
/// Where the memory is that a value of this type names: it says so (T::device, or T::Device, as tensors and leases do), or it is
/// the host's.
template <class T> using DeviceOf = typename detail::DeviceOf<T>::type;

}  // namespace skein::inline SKEIN_ABI
