// SPDX-License-Identifier: Apache-2.0
// Whether an operand of a matrix product is given transposed, and the interface of transposed copies.
#pragma once
#include "../device/device.hpp"
#include "cpu/transpose.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// `yes`: the array holds the transposed matrix.
enum class Transpose { no, yes };

/// Transposed copies on one device; a device without its header is a compile error that names this.
template <class Device> struct TransposeKernels;

template <> struct TransposeKernels<Cpu> {
  template <class Scalar> static void run(long rows, long columns, const Scalar* from, long pitch, Scalar* to, long to_pitch) {
    cpu::transpose(rows, 0, columns, from, pitch, to, to_pitch);
  }
};

/// to(j, i) = from(i, j) for a matrix of `rows` rows, `pitch` apart; what lies between the rows of `to` is left as it is.
template <class Device, class Scalar>
void transpose(long rows, long columns, const Scalar* from, long pitch, Scalar* to, long to_pitch) {
  TransposeKernels<Device>::run(rows, columns, from, pitch, to, to_pitch);
}

}  // namespace skein::inline SKEIN_ABI::ops
