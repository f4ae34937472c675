// SPDX-License-Identifier: Apache-2.0
// The few passes over plain arrays that containers need: sums, copies, fills. Arrays may be the same; they do not partly overlap.
#pragma once
#include <cstring>

#include "../device/device.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The passes of one device; a device without its header is a compile error that names this.
template <class Device> struct ElementwiseKernels;

template <> struct ElementwiseKernels<Cpu> {
  template <class Scalar> static void add(Scalar* y, const Scalar* a, const Scalar* b, long n) {
    for (long i = 0; i < n; ++i) y[i] = static_cast<Scalar>(a[i] + b[i]);
  }
  template <class Scalar> static void add_relu(Scalar* y, const Scalar* a, const Scalar* b, long n) {
    for (long i = 0; i < n; ++i) {
      const auto sum = a[i] + b[i];
      y[i] = static_cast<Scalar>(sum < 0 ? 0 : sum);
    }
  }
  template <class Scalar> static void relu_gradient(Scalar* dx, const Scalar* dy, const Scalar* y, long n) {
    for (long i = 0; i < n; ++i) dx[i] = y[i] > Scalar(0) ? dy[i] : Scalar(0);
  }
  template <class Scalar> static void copy(Scalar* y, const Scalar* x, long n) {
    std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(Scalar));
  }
  template <class Scalar> static void copy_rows(Scalar* y, long y_pitch, const Scalar* x, long x_pitch, long rows, long columns) {
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < columns; ++c) y[r * y_pitch + c] = x[r * x_pitch + c];
  }
  template <class Scalar> static void fill(Scalar* y, Scalar value, long n) {
    for (long i = 0; i < n; ++i) y[i] = value;
  }
};

/// y = a + b over n values.
template <class Device, class Scalar> void add(Scalar* y, const Scalar* a, const Scalar* b, long n) {
  ElementwiseKernels<Device>::add(y, a, b, n);
}

/// y = max(0, a + b) over n values. NaN stays.
template <class Device, class Scalar> void add_relu(Scalar* y, const Scalar* a, const Scalar* b, long n) {
  ElementwiseKernels<Device>::add_relu(y, a, b, n);
}

/// dx = dy where y > 0, else 0, over n values.
template <class Device, class Scalar> void relu_gradient(Scalar* dx, const Scalar* dy, const Scalar* y, long n) {
  ElementwiseKernels<Device>::relu_gradient(dx, dy, y, n);
}

/// y = x over n values; nothing where they are the same array.
template <class Device, class Scalar> void copy(Scalar* y, const Scalar* x, long n) {
  if (y != x && n > 0) ElementwiseKernels<Device>::copy(y, x, n);
}

/// Copies `rows` rows of `columns` values between arrays with other row pitches. What lies between the rows is left as it is.
template <class Device, class Scalar>
void copy_rows(Scalar* y, long y_pitch, const Scalar* x, long x_pitch, long rows, long columns) {
  ElementwiseKernels<Device>::copy_rows(y, y_pitch, x, x_pitch, rows, columns);
}

/// y = value over n values.
template <class Device, class Scalar> void fill(Scalar* y, Scalar value, long n) {
  ElementwiseKernels<Device>::fill(y, value, n);
}

}  // namespace skein::inline SKEIN_ABI::ops
