// SPDX-License-Identifier: Apache-2.0
// Which kernel runs a convolution on the processor: a rule by its geometry, the scalar type and the number of vector registers,
// from the figures of bench `kernels`.
#pragma once
#include <string_view>
#include <type_traits>

#include "conv2d_onednn.hpp"
#include "direct_conv2d.hpp"
#include "gathered_conv2d.hpp"
#include "pointwise_conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// The kernels of a convolution on the processor.
enum class Conv2dKernel {
  direct,                 ///< few channels: loops over the window, vectors over filters or width
  gathered,               ///< many channels: products of rows of the window, copied side by side
  rows,                   ///< a window of one pixel: products of rows as they lie
  onednn,                 ///< the rest, in float
  onednn_direct_weights,  ///< the same, but for the gradient of the weights
  reference,              ///< plain loops
};

/// What the summary calls a kernel: alone, and with what runs behind it; a direct one that has that fused to it says so itself.
struct Conv2dNames {
  std::string_view alone, before_norm, before_relu, before_pooling;
};
/// A kernel's names.
constexpr Conv2dNames names_of(Conv2dKernel kernel) {
  switch (kernel) {
    case Conv2dKernel::direct:
      return {"direct", "direct, then BatchNorm", "direct, then ReLU in place", "direct, then ReLU and pooling in one pass"};
    case Conv2dKernel::gathered:
      return {"gathered rows", "gathered rows, then BatchNorm", "gathered rows, then ReLU in place",
              "gathered rows, then ReLU and pooling in one pass"};
    case Conv2dKernel::rows:
      return {"rows", "rows, then BatchNorm", "rows, then ReLU in place", "rows, then ReLU and pooling in one pass"};
    case Conv2dKernel::onednn:
    case Conv2dKernel::onednn_direct_weights:
      return {"oneDNN", "oneDNN, then BatchNorm", "oneDNN, then ReLU in place", "oneDNN, then ReLU and pooling in one pass"};
    case Conv2dKernel::reference:
      break;
  }
  return {"reference", "reference", "reference", "reference"};
}

namespace detail {
/// Where oneDNN does not take the type, always; else with a pooling behind, or few channels.
template <class Scalar> constexpr bool is_faster_direct(const ConvReluPoolGeometry& g) {
#if SKEIN_WITH_XSIMD
  const bool rows = is_pointwise(g.conv) && g.conv.stride == 1;  // both gradients in one pass over the pixels
  const int most = g.conv.stride == 1 || (accumulators > 16 && g.conv.kernel > 1) ? 128 : 64;
  const bool many = accumulators <= 16 && is_gathered(g.conv) && g.conv.channels > 64 && g.conv.filters > 64;
  const bool few =
      g.conv.channels <= 8 || (g.conv.stride <= 2 && g.conv.channels <= most && g.conv.filters <= most && !rows && !many);
  const bool pooled = g.pooled() && g.conv.channels <= 64 && g.conv.filters <= 128;
  return takes_direct(g) && (pooled || few || !onednn_takes<Scalar>);
#else
  return takes_direct(g) && false;
#endif
}
/// With 16 registers oneDNN takes up to 1.6 times as long, for images that lie as ours; with 32 up to 1.3 times where the window
/// is one pixel, and 0.8 to 0.97 of the time where it is not.
template <class Scalar> constexpr bool is_faster_gathered(const Conv2dGeometry& g) {
#if SKEIN_WITH_XSIMD
  return is_gathered(g) && (accumulators <= 16 || (!is_pointwise(g) && (g.kernel == 1 || !onednn_takes<Scalar>)));
#else
  return is_gathered(g);
#endif
}
}  // namespace detail

/// The kernel of a convolution with what is fused to it, in Scalar. Direct ones alone run the ReLU and the pooling, too.
template <class Scalar> constexpr Conv2dKernel conv2d_kernel(const ConvReluPoolGeometry& g) {
  if (detail::is_faster_direct<Scalar>(g)) return Conv2dKernel::direct;
  if (std::is_floating_point_v<Scalar> && detail::is_faster_gathered<Scalar>(g.conv)) return Conv2dKernel::gathered;
  if (std::is_floating_point_v<Scalar> && is_pointwise(g.conv)) return Conv2dKernel::rows;
  if (!onednn_takes<Scalar>) return Conv2dKernel::reference;
  // oneDNN's gradient of the weights lies in a layout of its own, from which it is copied, and takes 1.05 to 1.5 times as long
  // where they are many (AVX-512).
  return is_gathered(g.conv) && takes_direct({g.conv}) ? Conv2dKernel::onednn_direct_weights : Conv2dKernel::onednn;
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
