// SPDX-License-Identifier: Apache-2.0
// Copies between devices: the one place where bytes cross. Copy<To, From> is specialised for each pair; a pair without its
// header is a compile error that names both.
#pragma once
#include <cstddef>

#include "memory.hpp"

namespace skein::inline SKEIN_ABI {

/// Moves bytes from one device to another; returns when they have arrived.
template <DeviceTag To, DeviceTag From> struct Copy;

template <> struct Copy<Cpu, Cpu> {
  static void run(void* to, const void* from, std::size_t bytes, Cpu = {}, Cpu = {}) {
    if (bytes) Memory<Cpu>::copy(to, from, bytes);
  }
};

}  // namespace skein::inline SKEIN_ABI
