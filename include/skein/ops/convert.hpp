// SPDX-License-Identifier: Apache-2.0
// Converts arrays between float, double and the 16-bit types: rounded to the nearest, ties to even. Dispatches on the device tag.
#pragma once
#include <cstring>
#include <type_traits>

#include "../core/half.hpp"
#include "../device/device.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What a device's conversion does; specialised by device.
template <class Device> struct ConvertKernels;

template <> struct ConvertKernels<Cpu> {
  // Plain loops without branches, in blocks of a fixed length: the compiler makes vectors of them.
  template <class To, class From> static void run(To* __restrict__ y, const From* __restrict__ x, long n) {
    constexpr long block = 64;
    long i = 0;
    for (; i + block <= n; i += block)
      for (long k = 0; k < block; ++k) y[i + k] = static_cast<To>(x[i + k]);
    for (long k = 0; k < block && k < n - i; ++k) y[i + k] = static_cast<To>(x[i + k]);
  }
  template <class To, class From> static void rows(To* y, long y_pitch, const From* x, long x_pitch, long rows, long columns) {
    for (long r = 0; r < rows; ++r) run(y + r * y_pitch, x + r * x_pitch, columns);
  }
};

/// y = x over n values. The arrays do not overlap.
template <class Device, class To, class From> void convert(To* y, const From* x, long n) {
  if (n > 0) ConvertKernels<Device>::run(y, x, n);
}

/// y = x for `rows` rows of `columns` values, each array with its row pitch. What lies between the rows may be written.
template <class Device, class To, class From>
void convert_rows(To* y, long y_pitch, const From* x, long x_pitch, long rows, long columns) {
  if (rows <= 0) return;
  if (y_pitch == x_pitch) convert<Device>(y, x, (rows - 1) * x_pitch + columns);
  else ConvertKernels<Device>::rows(y, y_pitch, x, x_pitch, rows, columns);
}

}  // namespace skein::inline SKEIN_ABI::ops
