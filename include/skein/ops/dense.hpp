// SPDX-License-Identifier: Apache-2.0
// Face of y = x W + b with sizes known at compile time, and of its gradients: dispatches on the device tag, and on the host by
// size, so that a tiny layer costs no more than its arithmetic. A device without its header is a compile error that names it.
#pragma once
#include <type_traits>

#include "cpu/dense_small.hpp"
#include "cpu/dense_thin.hpp"
#include "gemm.hpp"
#include "reference/dense.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace detail {
/// Does a library's matrix product run an (In, Out) layer? Up to two million weights own panels are as fast, and unlike oneDNN's
/// sgemm they allocate nothing in a step.
#if SKEIN_WITH_ONEDNN
#if SKEIN_WITH_XSIMD
inline constexpr long library_from = 2'000'000;
#else
inline constexpr long library_from = 0;
#endif
template <class Scalar, int In, int Out> inline constexpr bool by_library =
    std::is_same_v<Scalar, float> && 1L * In* Out >= library_from;
#else
template <class Scalar, int In, int Out> inline constexpr bool by_library = false;
#endif

template <class Scalar, int In, int Out> constexpr auto choose_dense() {
  constexpr DenseKernel kernel = dense_kernel(In, Out);
  if constexpr (kernel == DenseKernel::large && by_library<Scalar, In, Out>)
    return std::type_identity<reference::Dense<Scalar, In, Out, GemmKernels<Cpu>>>{};
#if SKEIN_WITH_XSIMD
  else if constexpr (kernel == DenseKernel::thin_output) return std::type_identity<cpu::DenseThin<Scalar, In, Out>>{};
  else if constexpr (kernel != DenseKernel::plain) return std::type_identity<cpu::DenseSmall<Scalar, In, Out>>{};
#endif
  else return std::type_identity<reference::Dense<Scalar, In, Out>>{};
}
}  // namespace detail

/// x is (batch, row_pitch(In)), y (batch, row_pitch(Out)), w (In, row_pitch(Out)), bias row_pitch(Out) or null. Gaps of x and dy
/// may hold anything; those of w and bias are zero, and those of their gradients stay so. `transposed` is what pack_weights()
/// wrote, dense_packed_weights(In, Out) scalars; a device that takes the weight as it is ignores it, and the workspace. Made of
/// DenseOptions:
///
///     forward<Finish>(batch, x, w, transposed, bias, y)          y = Finish{}(x w + bias); Finish takes vectors and scalars
///     input_gradient(batch, dy, w, transposed, workspace, dx)     workspace: dense_workspace(In, Out) scalars
///     gradients(DenseGradients, Share)                        of w and bias, or of this share of their columns
///     pack_weights(begin, end, w, transposed)                           for outputs [begin, end)
///     prepare<Finish>(batch, w, bias, dw, db)                 whatever these must have before the first call with this batch
template <class Device, class Scalar, int In, int Out> struct Dense;

/// Does the device's Dense take x, w, y and dy as Sample, with gradients of the weights in float?
template <class Device, class Sample> inline constexpr bool dense_computes_in = false;

template <class Scalar, int In, int Out> struct Dense<Cpu, Scalar, In, Out>
    : decltype(detail::choose_dense<Scalar, In, Out>())::type {
  constexpr explicit Dense(DenseOptions = {}) {}
  template <class Finish> static void prepare(long, const Scalar*, const Scalar*, const Scalar*, const Scalar*) {}
  static constexpr std::string_view kernel() {
    switch (dense_kernel(In, Out)) {
      case DenseKernel::plain:
        return "plain loops";
      case DenseKernel::thin_input:
      case DenseKernel::small:
        return "own, small";
      case DenseKernel::thin_output:
        return "own, dot products";
      case DenseKernel::large:
        break;
    }
    if (detail::by_library<Scalar, In, Out>) return "oneDNN";
#if SKEIN_WITH_XSIMD
    return "own, panels";
#else
    return "reference";
#endif
  }
};

/// The pass between an activation and the product before it, on one device.
template <class Device> struct ChainKernels;

template <> struct ChainKernels<Cpu> {
  template <int N, class Chain, class Scalar>
  static void chain_and_sum(long rows, const Scalar* dy, const Scalar* y, Scalar* g, Scalar* sums, bool accumulate) {
    constexpr long pitch = row_pitch(N);
#if SKEIN_WITH_XSIMD
    if constexpr (N > 4)
      return cpu::column_sums<N, Chain>(cpu::ColumnSums<Scalar>{
          .rows = rows, .pitch = pitch, .dy = dy, .y = y, .g = g, .sums = sums, .accumulate = accumulate});
#endif
    if (sums && !accumulate)
      for (long j = 0; j < N; ++j) sums[j] = 0;
    for (long r = 0; r < rows; ++r)
      for (long j = 0; j < N; ++j) {
        const Scalar v = Chain{}(dy[r * pitch + j], y[r * pitch + j]);
        g[r * pitch + j] = v;
        if (sums) sums[j] += v;
      }
  }
};

/// g = chain(dy, y) over `rows` rows of N values, and sums (+)= the sums of its columns (null: no sums). In place where g is dy
/// or y.
template <class Device, int N, class Chain, class Sample, class Scalar>
void chain_and_sum(long rows, const Sample* dy, const Sample* y, Sample* g, Scalar* sums, bool accumulate) {
  ChainKernels<Device>::template chain_and_sum<N, Chain>(rows, dy, y, g, sums, accumulate);
}

}  // namespace skein::inline SKEIN_ABI::ops
