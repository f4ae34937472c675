// SPDX-License-Identifier: Apache-2.0
// Normalisation by the root mean square over the last extent: each flat sample, or each position, by itself. PyTorch's
// RMSNorm(channels) on channels-last data. Zhang and Sennrich, NeurIPS 2019.
#pragma once
#include <limits>

#include "../core/half.hpp"
#include "../ops/normalization.hpp"
#include "normalization_layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// y = x / sqrt(mean of x^2 + epsilon) weight. Options: Epsilon<N, D>; without it the machine epsilon of the model's scalar, as
/// in PyTorch. The same in training and evaluation.
template <class... Options> struct RmsNorm {
  using options = detail::LayerOptions<List<Epsilon<0, 0>>, Options...>;  // no default of its own

  /// Samples of any type on a GPU; the root is a float's.
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = detail::normalization_info(in, false);
    info.saved_for_backward = in.count() / in.last();  // 1 / root of each row
    info.flops = 5 * in.count();
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return ops::row_normalize_needs<Device>(in.last()); }

  template <class In, class Frame> static void forward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    constexpr double given = detail::option<Epsilon>(options{}).ratio();
    constexpr double epsilon = given > 0 ? given : static_cast<double>(std::numeric_limits<Scalar>::epsilon());
    ops::row_normalize<typename Frame::Device, ops::Center::nothing>(ops::rows_of(In::extents, f.batch), f.x, f.parameters,
                                                                     static_cast<const Scalar*>(nullptr), epsilon, f.y,
                                                                     f.saved_for_backward);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    ops::row_normalize_backward<typename Frame::Device, ops::Center::nothing>(
        ops::rows_of(In::extents, f.batch), f.x, f.dy, f.parameters, static_cast<const Scalar*>(f.saved_for_backward), f.dx,
        f.gradients, static_cast<Scalar*>(nullptr), f.workspace);
  }
  /// Adds the gradient of the weight over the samples of f alone to f.gradients.
  template <class In, class Frame> static void unit_gradient(Frame& f) { backward<In>(f); }
  template <class In, class Frame> static void prepare(Frame& f) {
    ops::row_normalize_prepare<typename Frame::Device, typename Frame::Scalar>(ops::rows_of(In::extents, f.batch));
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
