// SPDX-License-Identifier: Apache-2.0
// f(i) for each index, where the device's memory is: a loop, or a kernel. For layers and passes of one's own that are written
// once:
//
//     template <class Scalar> struct Scaled {                                // y = w x, a factor a column
//       const Scalar *x, *w;
//       Scalar* y;
//       long columns;
//       constexpr void operator()(long i) const { y[i] = w[i % columns] * x[i]; }
//     };
//     ops::for_each<typename Frame::Device>(n, Scaled<Scalar>{f.x, f.parameters, f.y, columns});
#pragma once
#include "../device/device.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Runs of one device; a device without its header is a compile error that names this.
template <class Device> struct IndexKernels;

template <> struct IndexKernels<Cpu> {
  template <class Function> static void run(long n, Function f) {
    for (long i = 0; i < n; ++i) f(i);
  }
};

/// f(0), f(1), ... f(n - 1), in any order, on a GPU at the same time: no two may write one value. f is a function object of plain
/// values and pointers of the device (no lambda: nvcc does not take those), its operator constexpr. On a GPU nothing waits.
template <class Device, class Function> void for_each(long n, const Function& f) { IndexKernels<Device>::run(n, f); }

}  // namespace skein::inline SKEIN_ABI::ops
