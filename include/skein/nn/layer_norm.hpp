// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last extent: each flat sample, or each position of an image, by itself. PyTorch's
// LayerNorm(channels) on channels-last data. Ba, Kiros, Hinton, arXiv:1607.06450.
#pragma once
#include "../core/half.hpp"
#include "../ops/normalization.hpp"
#include "normalization_layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Options: Epsilon<N, D> (default 1/100000). The same in training and evaluation.
template <class... Options> struct LayerNorm {
  using options = detail::LayerOptions<List<Epsilon<1, 100000>>, Options...>;
  static constexpr double epsilon = detail::option<Epsilon>(options{}).ratio();

  /// Samples of any type on a GPU; mean and deviation are float's.
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = detail::normalization_info(in);
    info.saved_for_backward = 2 * (in.count() / in.last());  // mean and 1 / deviation of each row
    info.flops = 8 * in.count();
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return ops::row_normalize_needs<Device>(in.last()); }

  template <class In, class Frame> static void forward(Frame& f) {
    constexpr long bias = row_pitch(In::extents.last());
    ops::row_normalize<typename Frame::Device>(ops::rows_of(In::extents, f.batch), f.x, f.parameters, f.parameters + bias,
                                               epsilon, f.y, f.saved_for_backward);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr long bias = row_pitch(In::extents.last());
    ops::row_normalize_backward<typename Frame::Device>(ops::rows_of(In::extents, f.batch), f.x, f.dy, f.parameters,
                                                        static_cast<const typename Frame::Scalar*>(f.saved_for_backward), f.dx,
                                                        f.gradients, f.gradients + bias, f.workspace);
  }
  /// Adds the gradient of weight and bias over the samples of f alone to f.gradients.
  template <class In, class Frame> static void unit_gradient(Frame& f) { backward<In>(f); }
  template <class In, class Frame> static void prepare(Frame& f) {
    ops::row_normalize_prepare<typename Frame::Device, typename Frame::Scalar>(ops::rows_of(In::extents, f.batch));
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
