// SPDX-License-Identifier: Apache-2.0
// The few passes over plain arrays that containers need: sums and copies. Arrays may be the same; they do not partly overlap.
#pragma once
#include <cstring>

#include "../device/device.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// y = a + b over n values.
template <class Device, class Scalar> void add(Scalar* y, const Scalar* a, const Scalar* b, long n) {
  static_assert(std::same_as<Device, Cpu>, "ops::add: this device's operations are not included");
  for (long i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

/// y = x over n values; nothing where they are the same array.
template <class Device, class Scalar> void copy(Scalar* y, const Scalar* x, long n) {
  static_assert(std::same_as<Device, Cpu>, "ops::copy: this device's operations are not included");
  if (y != x && n > 0) std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(Scalar));
}

/// Copies `rows` rows of `columns` values between arrays with other row pitches.
template <class Device, class Scalar>
void copy_rows(Scalar* y, long y_pitch, const Scalar* x, long x_pitch, long rows, long columns) {
  static_assert(std::same_as<Device, Cpu>, "ops::copy_rows: this device's operations are not included");
  for (long r = 0; r < rows; ++r)
    for (long c = 0; c < columns; ++c) y[r * y_pitch + c] = x[r * x_pitch + c];
}

}  // namespace skein::inline SKEIN_ABI::ops
