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

template <class T> concept DeviceTag = std::same_as<T, Cpu> || std::same_as<T, Cuda>;

}  // namespace skein::inline SKEIN_ABI
