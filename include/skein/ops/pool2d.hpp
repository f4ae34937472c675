// SPDX-License-Identifier: Apache-2.0
// Face of pooling: dispatches on the device tag. Images are NHWC and dense; geometries are values. Scalar: what images are stored
// in; a device may take 16-bit types.
#pragma once
#include "../device/device.hpp"
#include "cpu/pool2d.hpp"
#include "reference/pool2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// A device's pooling: each specialises it.
template <class Device> struct PoolKernels;

template <> struct PoolKernels<Cpu> {
  template <class Scalar>
  static void max_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y, ArgMax* winners) {
    cpu::max_pool2d_forward(g, batch, x, y, winners);
  }
  template <class Scalar>
  static void max_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, const ArgMax* winners, Scalar* dx) {
    cpu::max_pool2d_backward(g, batch, dy, winners, dx);
  }
  template <class Scalar> static void average_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y) {
    reference::average_pool2d_forward(g, batch, x, y);
  }
  template <class Scalar> static void average_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, Scalar* dx) {
    reference::average_pool2d_backward(g, batch, dy, dx);
  }
  template <class Scalar>
  static void global_forward(long pixels, long channels, long batch, const Scalar* x, Scalar* y, long y_pitch) {
    reference::global_average_forward(pixels, channels, batch, x, y, y_pitch);
  }
  template <class Scalar>
  static void global_backward(long pixels, long channels, long batch, const Scalar* dy, long dy_pitch, Scalar* dx) {
    reference::global_average_backward(pixels, channels, batch, dy, dy_pitch, dx);
  }
};

/// The maximum of each window and its place in the window (the first of equals; a NaN wins): winners is (batch, out_count).
template <class Device, class Scalar>
void max_pool2d_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y, ArgMax* winners) {
  PoolKernels<Device>::max_forward(g, batch, x, y, winners);
}
/// Writes all of dx: each winner gets the gradients of the windows that it won.
template <class Device, class Scalar>
void max_pool2d_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, const ArgMax* winners, Scalar* dx) {
  PoolKernels<Device>::max_backward(g, batch, dy, winners, dx);
}
/// The mean of each window; padding counts as zeros.
template <class Device, class Scalar>
void average_pool2d_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y) {
  PoolKernels<Device>::average_forward(g, batch, x, y);
}
/// The gradient of average_pool2d_forward: dx is written whole.
template <class Device, class Scalar>
void average_pool2d_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, Scalar* dx) {
  PoolKernels<Device>::average_backward(g, batch, dy, dx);
}
/// The mean of each channel over all pixels; y is (batch, y_pitch), its gaps become zero.
template <class Device, class Scalar>
void global_average_forward(long pixels, long channels, long batch, const Scalar* x, Scalar* y, long y_pitch) {
  PoolKernels<Device>::global_forward(pixels, channels, batch, x, y, y_pitch);
}
/// The gradient of global_average_forward: each pixel gets its share of its channel's.
template <class Device, class Scalar>
void global_average_backward(long pixels, long channels, long batch, const Scalar* dy, long dy_pitch, Scalar* dx) {
  PoolKernels<Device>::global_backward(pixels, channels, batch, dy, dy_pitch, dx);
}

}  // namespace skein::inline SKEIN_ABI::ops
