// SPDX-License-Identifier: Apache-2.0
// GroupNorm<G>: each sample by itself, its channels (the last extent) in G groups of neighbours, a mean and a variance for each.
// PyTorch's GroupNorm(G, channels) on channels-last data. Wu and He, ECCV 2018.
#pragma once
#include "../core/half.hpp"
#include "../ops/group_normalization.hpp"
#include "normalization_layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Samples (..., C) of any rank. Options: Epsilon<N, D> (default 1/100000). The same in training and evaluation, and no sample
/// depends on another. Refuses a G that does not divide C. GroupNorm<C> is instance normalisation with weight and bias.
template <int G, class... Options> struct GroupNorm {
  using options = detail::LayerOptions<List<Epsilon<1, 100000>>, Options...>;
  static constexpr double epsilon = detail::option<Epsilon>(options{}).ratio();
  static_assert(G > 0, "GroupNorm<G>: at least one group");

  /// Samples of any type on a GPU; mean and deviation are float's.
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = detail::normalization_info(in);
    info.saved_for_backward = 2 * G;  // mean and 1 / deviation of each group
    info.flops = 8 * in.count();
    if (in.last() % G != 0) info.fault = Fault::groups_do_not_divide;
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return ops::group_normalize_needs<Device>(in.last()); }

  template <class In, class Frame> static void forward(Frame& f) {
    Kernels<Frame>::template forward<In::extents.last(), G>(call<In>(f));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Kernels<Frame>::template backward<In::extents.last(), G>(call<In>(f));
  }
  /// Adds the gradient of weight and bias over the samples of f alone to f.gradients.
  template <class In, class Frame> static void unit_gradient(Frame& f) { backward<In>(f); }
  template <class In, class Frame> static void prepare(Frame& f) {
    Kernels<Frame>::template prepare<In::extents.last(), G>(call<In>(f));
  }

 private:
  template <class Frame> using Kernels = ops::GroupNormalizeKernels<typename Frame::Device>;
  template <class In, class Frame> static auto call(const Frame& f) {
    using Call = ops::GroupNormalizeCall<typename Frame::Activation, typename Frame::Scalar>;
    Call c = detail::normalization_call<Call, In>(f);
    c.pitch = sample_pitch(In::extents);
    c.epsilon = epsilon;
    c.saved_for_backward = f.saved_for_backward;
    return c;
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
