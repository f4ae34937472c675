// SPDX-License-Identifier: Apache-2.0
// Face of layer normalisation: dispatches on the device tag. (Batch normalisation: batch_norm.hpp.)
#pragma once
#include <cstddef>

#include "../core/shape.hpp"
#include "../device/device.hpp"
#include "cpu/normalization.hpp"
#include "kernel_needs.hpp"
#include "reference/normalization.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The rows of a batch of samples along their last extent. Only flat samples have gaps.
constexpr RowShape rows_of(const Extents& in, long batch) {
  return {batch * (in.count() / in.last()), in.last(), in.flat() ? row_pitch(in.last()) : in.last()};
}

/// Layer normalisation of one device; a device without its header is a compile error that names this.
template <class Device> struct RowNormalizeKernels;

template <> struct RowNormalizeKernels<Cpu> {
  template <Center C, class Scalar, class Value> static void forward(const RowShape& s, const Value* x, const Scalar* weight,
                                                                     const Scalar* bias, double epsilon, Value* y,
                                                                     Scalar* saved_for_backward) {
    cpu::row_normalize<C>(s, x, weight, bias, epsilon, y, saved_for_backward);
  }
  template <Center C, class Scalar, class Value>
  static void backward(const RowShape& s, const Value* x, const Value* dy, const Scalar* weight, const Scalar* saved_for_backward,
                       Value* dx, Scalar* dweight, Scalar* dbias, Scalar* scratch) {
    cpu::row_normalize_backward<C>(s, x, dy, weight, saved_for_backward, dx, dweight, dbias, scratch);
  }
  static void prepare(const RowShape&, std::size_t) {}
};

/// What a device's kernels want for rows of n values.
template <class Device> constexpr KernelNeeds row_normalize_needs(long) { return {}; }
template <> constexpr KernelNeeds row_normalize_needs<Cpu>(long n) { return {.workspace = 2 * n}; }

/// y = (x - mean) / sqrt(variance + epsilon) weight + bias, each row by itself; saved: (rows, 2), mean and 1 / deviation. Without
/// a center y = x / sqrt(mean of x^2 + epsilon) weight, and saved is (rows, 1). Values may be of a 16-bit type on a GPU.
template <class Device, Center C = Center::mean, class Scalar, class Value>
void row_normalize(const RowShape& s, const Value* x, const Scalar* weight, const Scalar* bias, double epsilon, Value* y,
                   Scalar* saved_for_backward) {
  RowNormalizeKernels<Device>::template forward<C>(s, x, weight, bias, epsilon, y, saved_for_backward);
}
/// Adds to dweight and, with a center, to dbias; writes dx where it is not null. scratch: 2 n scalars, on the Cpu.
template <class Device, Center C = Center::mean, class Scalar, class Value>
void row_normalize_backward(const RowShape& s, const Value* x, const Value* dy, const Scalar* weight,
                            const Scalar* saved_for_backward, Value* dx, Scalar* dweight, Scalar* dbias, Scalar* scratch) {
  RowNormalizeKernels<Device>::template backward<C>(s, x, dy, weight, saved_for_backward, dx, dweight, dbias, scratch);
}
/// Makes what the passes over rows of this shape want before the first step.
template <class Device, class Scalar> void row_normalize_prepare(const RowShape& s) {
  RowNormalizeKernels<Device>::prepare(s, sizeof(Scalar));
}

}  // namespace skein::inline SKEIN_ABI::ops
