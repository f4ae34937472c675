// SPDX-License-Identifier: Apache-2.0
// Face of pooling: dispatches on the device tag. Images are NHWC and dense; geometries are values.
#pragma once
#include "../device/device.hpp"
#include "cpu/pool2d.hpp"
#include "reference/pool2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The maximum of each window and its place in the window (the first of equals; a NaN wins): winners is (batch, out_count).
template <class Scalar>
void max_pool2d_forward(Cpu, const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y, Winner* winners) {
  cpu::max_pool2d_forward(g, batch, x, y, winners);
}
/// Writes all of dx: each winner gets the gradients of the windows that it won.
template <class Scalar>
void max_pool2d_backward(Cpu, const Pool2dGeometry& g, long batch, const Scalar* dy, const Winner* winners, Scalar* dx) {
  cpu::max_pool2d_backward(g, batch, dy, winners, dx);
}
/// The mean of each window; padding counts as zeros.
template <class Scalar> void average_pool2d_forward(Cpu, const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y) {
  reference::average_pool2d_forward(g, batch, x, y);
}
template <class Scalar> void average_pool2d_backward(Cpu, const Pool2dGeometry& g, long batch, const Scalar* dy, Scalar* dx) {
  reference::average_pool2d_backward(g, batch, dy, dx);
}
/// The mean of each channel over all pixels; y is (batch, y_pitch), its gaps become zero.
template <class Scalar>
void global_average_forward(Cpu, long pixels, long channels, long batch, const Scalar* x, Scalar* y, long y_pitch) {
  reference::global_average_forward(pixels, channels, batch, x, y, y_pitch);
}
template <class Scalar>
void global_average_backward(Cpu, long pixels, long channels, long batch, const Scalar* dy, long dy_pitch, Scalar* dx) {
  reference::global_average_backward(pixels, channels, batch, dy, dy_pitch, dx);
}

}  // namespace skein::inline SKEIN_ABI::ops
