// SPDX-License-Identifier: Apache-2.0
// What the back ends of ops/dense.hpp share: the arguments of a backward pass and the choice of the kernels by size.
#pragma once
#include <string_view>

#include "../core/shape.hpp"
#include "../device/device.hpp"
#include "kernel_needs.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What is done to a value of y before it is stored: nothing.
struct Keep {
  template <class V> SKEIN_ALWAYS_INLINE constexpr V operator()(const V& v) const { return v; }
};

/// That a Finish is max(v, 0). A back end may then take 0 as a value, and so compile one kernel for Keep and for it.
template <class Finish> inline constexpr bool is_rectifier = false;

/// What a caller allows beyond the arithmetic of its types. Devices that cannot, do not.
struct DenseOptions {
  bool tf32 = false;  ///< floats may be rounded to TF32 on their way into matrix units
};

/// One backward pass of y = x W + b over `batch` samples. Rows are row_pitch apart; dw and db are stored like the parameters.
/// Sample is the type of x and dy: that of the parameters, or one of 16 bits where a device multiplies such into Scalar.
template <class Scalar, class Sample = Scalar> struct DenseGradients {
  long batch = 0;
  const Sample* x = nullptr;
  const Sample* dy = nullptr;
  Scalar* dw = nullptr;
  Scalar* db = nullptr;     ///< null: no bias, or its sums are made elsewhere
  bool accumulate = false;  ///< add to what dw and db hold
};

/// Who computes which columns of a weight's gradient: worker `index` of `count`.
struct Share {
  int index = 0, count = 1;
  constexpr bool has(int part, int parts) const { return count == 1 || part * count / parts == index; }
};

enum class DenseKernel { plain, thin_input, thin_output, small, large };

/// The kernels for an (in, out) weight. `large`: it does not stay in the second-level cache; a library's product where there is
/// one for the scalar, else own panels.
constexpr DenseKernel dense_kernel(int in, int out) {
#if SKEIN_WITH_XSIMD
  if (in <= 4 && out <= 4) return DenseKernel::plain;
  if (out <= 4) return DenseKernel::thin_output;
  if (in <= 4) return DenseKernel::thin_input;
  return 1L * in * out <= 128 * 1024 ? DenseKernel::small : DenseKernel::large;
#else
  return 1L * in * out <= 256 ? DenseKernel::plain : DenseKernel::large;
#endif
}

/// A weight so small that backward transposes it whenever it wants to: nothing is kept, and nothing done where nobody wants dx.
constexpr bool turns_on_the_fly(int in, int out) {
  return dense_kernel(in, out) == DenseKernel::small && out * row_pitch(in) <= 256;
}

/// Scalars of the transposed copy that the host's kernels want of an (in, out) weight: (out, row_pitch(in)), or none.
constexpr long dense_packed_weights(int in, int out) {
  const DenseKernel kernel = dense_kernel(in, out);
  if (kernel != DenseKernel::thin_output && kernel != DenseKernel::small) return 0;
  return turns_on_the_fly(in, out) ? 0 : out * row_pitch(in);
}

/// Scalars of scratch memory that the gradient of the input wants: a transposed panel, made anew in each call.
constexpr long dense_workspace(int in, int out) { return dense_kernel(in, out) == DenseKernel::large ? 128L * out : 0; }

/// What a device's kernels of an (in, out) weight want.
template <class Device> constexpr KernelNeeds dense_needs(int, int) { return {}; }
/// The host's: a large weight's gradients are divided, since to sum the workers' own would cost more than two barriers.
template <> constexpr KernelNeeds dense_needs<Cpu>(int in, int out) {
  return {dense_packed_weights(in, out), dense_workspace(in, out), 1L * in * out >= 64 * 1024 && out > 4};
}

}  // namespace skein::inline SKEIN_ABI::ops
