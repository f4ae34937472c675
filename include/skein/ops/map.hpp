// SPDX-License-Identifier: Apache-2.0
// Face of elementwise passes over plain arrays by function objects: one fused loop, in vectors where the scalar has them. What
// tensors' expressions are to a program, these are to layers: no shapes, no nodes.
#pragma once
#include "../device/device.hpp"
#include "cpu/map.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// y = f(x) over n values. f is empty, takes vectors and scalars. x and y may be the same array.
template <class Device, class Function, class Scalar> void map(Function f, long n, const Scalar* x, Scalar* y) {
  static_assert(std::is_same_v<Device, Cpu>, "ops::map: this device's operations are not included");
  cpu::map(f, n, x, y);
}

/// y = f(a, b) over n values. Arrays may be the same.
template <class Device, class Function, class Scalar> void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
  static_assert(std::is_same_v<Device, Cpu>, "ops::zip: this device's operations are not included");
  cpu::zip(f, n, a, b, y);
}

}  // namespace skein::inline SKEIN_ABI::ops
