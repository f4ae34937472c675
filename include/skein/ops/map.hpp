// SPDX-License-Identifier: Apache-2.0
// Face of elementwise passes over plain arrays by function objects: one fused loop, in vectors where the scalar has them, or one
// kernel. What tensors' expressions are to a program, these are to layers: no shapes, no nodes.
#pragma once
#include "../device/device.hpp"
#include "cpu/map.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The passes of one device; a device without its header is a compile error that names this.
template <class Device> struct MapKernels;

template <> struct MapKernels<Cpu> {
  template <class Function, class Scalar> static void map(Function f, long n, const Scalar* x, Scalar* y) {
    cpu::map(f, n, x, y);
  }
  template <class Function, class Scalar> static void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
    cpu::zip(f, n, a, b, y);
  }
};

/// y = f(x) over n values. f is empty, takes vectors and scalars. x and y may be the same array.
template <class Device, class Function, class Scalar> void map(Function f, long n, const Scalar* x, Scalar* y) {
  MapKernels<Device>::map(f, n, x, y);
}

/// y = f(a, b) over n values. Arrays may be the same.
template <class Device, class Function, class Scalar> void zip(Function f, long n, const Scalar* a, const Scalar* b, Scalar* y) {
  MapKernels<Device>::zip(f, n, a, b, y);
}

}  // namespace skein::inline SKEIN_ABI::ops
