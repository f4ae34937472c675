// SPDX-License-Identifier: Apache-2.0
// BatchNormRelu: BatchNorm and Relu as one layer on the host: one pass in place of two forward, two in place of three backward.
// (On a GPU: nn/cuda/batch_norm.hpp. Behind a convolution: conv_batch_norm.hpp.)
#pragma once
#include "../batch_norm.hpp"
#include "../fusion.hpp"
#include "../relu.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Parameters and buffers are those of Norm. Backward finds what passed the ReLU from the input.
template <class Norm> struct BatchNormRelu {
  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = Norm::describe(in);
    info.batch_statistics *= 2;  // scale and shift, too
    info.remakes_output = Remakes::from_input;
    info.flops += in.count();
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return Norm::template needs<Device>(in); }

  template <class In, class Frame> static void forward(Frame& f) {
    Kernels<Frame>::template forward<In::extents.last(), Norm::width(In::extents)>(call<In>(f), *f.context);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Kernels<Frame>::template backward<In::extents.last(), Norm::width(In::extents)>(call<In>(f), *f.context);
  }
  /// Adds the gradient of weight and bias over the samples of f alone to f.gradients.
  template <class In, class Frame> static void unit_gradient(Frame& f) { backward<In>(f); }
  template <class In, class Frame> static void remake(Frame& f) {
    Kernels<Frame>::template remake<In::extents.last(), Norm::width(In::extents)>(call<In>(f));
  }

 private:
  template <class Frame> using Kernels = ops::BatchNormKernels<typename Frame::Device>;
  template <class In, class Frame> static auto call(Frame& f) { return Norm::template call<In, true>(f); }
};

template <class... Os> struct Fusion<Cpu, BatchNorm<Os...>, Relu> { using type = BatchNormRelu<BatchNorm<Os...>>; };

}  // namespace skein::inline SKEIN_ABI::nn
