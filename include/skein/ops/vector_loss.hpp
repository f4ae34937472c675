// SPDX-License-Identifier: Apache-2.0
// Losses that are sums over elements: one pass over outputs and targets that gives the sum and the gradient. The element's loss
// is a function object, written once for every device:
//
//     struct LogCosh {
//       template <class Scalar> constexpr Scalar operator()(Scalar x, Scalar t, long i, Scalar& derivative) const {
//         using std::exp, std::log1p, std::tanh, std::abs;                    // from <cmath>: a device has its own
//         derivative = tanh(x - t);
//         return abs(x - t) + log1p(exp(-2 * abs(x - t))) - Scalar(0.6931471805599453);
//       }
//     };
#pragma once
#include "../device/device.hpp"
#include "step_values.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Rows of outputs and targets. Gradient rows (null: not wanted) have the pitch of the outputs; their gaps become zero.
template <class Scalar> struct VectorLossArguments {
  const Scalar* outputs = nullptr;
  long output_pitch = 0, width = 0;
  const Scalar* targets = nullptr;
  long target_pitch = 0, count = 0;
  Scalar scale = 1;  ///< factor of the gradient
  Scalar* gradient = nullptr;
  double* sums = nullptr;              ///< a device's: loss and weight (the number of elements) are added there
  const StepValues* values = nullptr;  ///< a device's: the gradient is also multiplied by its loss_scale
};

/// The pass on one device; a device without its header is a compile error that names this.
template <class Device> struct VectorLossKernels;

template <> struct VectorLossKernels<Cpu> {
  /// Returns the sum over all elements.
  template <class Scalar, class Function> static double run(const VectorLossArguments<Scalar>& p, const Function& f) {
    long rows = p.count, columns = p.width, pitch = p.output_pitch, target_pitch = p.target_pitch;
    if (pitch == columns && target_pitch == columns)
      columns *= rows, rows = rows > 0 ? 1 : 0, pitch = columns, target_pitch = columns;
    constexpr long block = 16;  // so many at a time: the compiler makes vectors of it
    double sums[block] = {};
    for (long r = 0; r < rows; ++r) {
      const Scalar* x = p.outputs + r * pitch;
      const Scalar* t = p.targets + r * target_pitch;
      Scalar* g = p.gradient ? p.gradient + r * pitch : nullptr;
      long i = 0;
      for (; i + block <= columns; i += block) {
        Scalar loss[block], derivative[block];
        for (long k = 0; k < block; ++k) loss[k] = f(x[i + k], t[i + k], i + k, derivative[k]);
        if (g)
          for (long k = 0; k < block; ++k) g[i + k] = derivative[k] * p.scale;
        for (long k = 0; k < block; ++k) sums[k] += static_cast<double>(loss[k]);
      }
      for (; i < columns; ++i) {
        Scalar derivative;
        sums[i % block] += static_cast<double>(f(x[i], t[i], i, derivative));
        if (g) g[i] = derivative * p.scale;
      }
      if (g)
        for (; i < pitch; ++i) g[i] = 0;
    }
    for (long k = 1; k < block; ++k) sums[0] += sums[k];
    return sums[0];
  }
  static void prepare() {}
};

/// The sum over all elements of f(output, target, i, derivative), which sets the derivative; i modulo the width is the column. On
/// the Cpu it is returned; a device adds it to arguments.sums, and the call returns 0 without waiting.
template <class Device, class Scalar, class Function>
double vector_loss(const VectorLossArguments<Scalar>& arguments, const Function& f) {
  return VectorLossKernels<Device>::run(arguments, f);
}

}  // namespace skein::inline SKEIN_ABI::ops
