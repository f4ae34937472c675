// SPDX-License-Identifier: Apache-2.0
// BatchNorm on the GPU: with the Relu behind it in the same passes over the batch.
#pragma once
#include "../../ops/cuda/batch_norm.hpp"
#include "../batch_norm.hpp"
#include "../fusion.hpp"
#include "../relu.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// BatchNorm and Relu as one layer: backward reads the output to know what passed.
template <class Norm> struct RectifiedBatchNorm {
  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = Norm::describe(in);
    info.saves_output = true;
    info.flops += in.count();
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return Norm::template needs<Device>(in); }
  template <class Device, class Activation> static constexpr bool computes_in = nn::computes_in<Norm, Device, Activation>;

  template <class In, class Frame> static void forward(Frame& f) {
    Kernels<Frame>::template forward<In::extents.last(), Norm::width(In::extents)>(Norm::template call<In, true>(f), *f.context);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Kernels<Frame>::template backward<In::extents.last(), Norm::width(In::extents)>(Norm::template call<In, true>(f), *f.context);
  }
  template <class In, class Frame> static void prepare(Frame& f) {
    Kernels<Frame>::template prepare<In::extents.last(), Norm::width(In::extents)>(Norm::template call<In, true>(f));
  }

 private:
  template <class Frame> using Kernels = ops::BatchNormKernels<typename Frame::Device>;
};

template <class... Os> struct Fusion<Cuda, BatchNorm<Os...>, Relu> { using type = RectifiedBatchNorm<BatchNorm<Os...>>; };

}  // namespace skein::inline SKEIN_ABI::nn
