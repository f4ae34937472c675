// SPDX-License-Identifier: Apache-2.0
// Face of dropout: dispatches on the device tag.
#pragma once
#include "../device/device.hpp"
#include "cpu/dropout.hpp"
#include "reference/dropout.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Dropout of one device; a device without its header is a compile error that names this.
template <class Device> struct DropoutKernels;

template <> struct DropoutKernels<Cpu> {
  template <class Scalar> static void run(const DropoutShape& shape, double rate, const Scalar* x, Scalar* y) {
    cpu::dropout(shape, rate, x, y);
  }
};

/// y = x / (1 - rate) where the mask keeps, else 0; forward and backward alike. x and y may be the same array. Rate 0 copies.
template <class Device, class Scalar> void dropout(const DropoutShape& shape, double rate, const Scalar* x, Scalar* y) {
  DropoutKernels<Device>::run(shape, rate, x, y);
}

}  // namespace skein::inline SKEIN_ABI::ops
