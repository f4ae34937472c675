// SPDX-License-Identifier: Apache-2.0
// Conv1d, Conv2d and Conv3d on the GPU, alone or with the Relu behind it: the same parameters, other packed weights (cuDNN's
// order of filters), no workspace of its own. Images may be stored in bf16 or fp16.
#pragma once
#include "../../ops/cuda/conv2d.hpp"
#include "../conv2d.hpp"
#include "../fusion.hpp"
#include "../relu.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Parameters are those of Convolution. With a Relu, backward reads the output to know what it let pass.
template <class Convolution, bool Rectifies> struct DeviceConv2d {
  static constexpr LayerInfo describe(Extents in) {
    const ops::Conv2dGeometry g = Convolution::geometry(in);
    LayerInfo i = Convolution::describe(in);
    i.saves_output = Rectifies;
    if (Rectifies) i.flops += g.out_count();
    return i;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return Convolution::template needs<Device>(in); }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  template <class In, class Frame> static void forward(Frame& f) {
    Op<Frame>::forward(Convolution::geometry(In::extents), call<In>(f));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Op<Frame>::backward(Convolution::geometry(In::extents), call<In>(f));
  }
  template <class In, class Frame> static void pack_weights(Frame& f) {
    Op<Frame>::pack_weights(Convolution::geometry(In::extents), call<In>(f));
  }
  template <class In, class Frame> static void prepare(Frame& f) {
    Op<Frame>::prepare(Convolution::geometry(In::extents), f.batch, Convolution::has_bias, Rectifies, math(f));
  }
  template <class In, class Frame> static constexpr std::string_view kernel() {
    constexpr std::string_view name = Op<Frame>::name(Convolution::geometry(In::extents));
    return name == "cuDNN" && Rectifies ? "cuDNN with ReLU" : name;
  }

 private:
  template <class Frame> using Op = ops::DeviceConv2d<typename Frame::Activation, typename Frame::Scalar>;
  template <class Frame> static ops::cudnn::MathMode math(const Frame& f) {
    return f.context->math == FloatMath::tf32 ? ops::cudnn::MathMode::tf32 : ops::cudnn::MathMode::full;
  }
  template <class In, class Frame> static auto call(Frame& f) {
    constexpr long weight = Convolution::geometry(In::extents).weight_rows() * Convolution::geometry(In::extents).weight_pitch();
    constexpr bool bias = Convolution::has_bias;
    return typename Op<Frame>::Call{.batch = f.batch,
                                    .x = f.x,
                                    .weight = f.parameters,
                                    .bias = bias ? f.parameters + weight : nullptr,
                                    .y = f.y,
                                    .dy = f.dy,
                                    .dx = f.dx,
                                    .dweight = f.gradients,
                                    .dbias = bias && f.gradients ? f.gradients + weight : nullptr,
                                    .packed_weights = reinterpret_cast<typename Frame::Activation*>(f.packed_weights),
                                    .math = math(f),
                                    .has_relu = Rectifies};
  }
};

template <int F, class... Os> struct Fusion<Cuda, Conv1d<F, Os...>> { using type = DeviceConv2d<Conv1d<F, Os...>, false>; };
template <int F, class... Os> struct Fusion<Cuda, Conv1d<F, Os...>, Relu> { using type = DeviceConv2d<Conv1d<F, Os...>, true>; };
template <int F, class... Os> struct Fusion<Cuda, Conv3d<F, Os...>> { using type = DeviceConv2d<Conv3d<F, Os...>, false>; };
template <int F, class... Os> struct Fusion<Cuda, Conv3d<F, Os...>, Relu> { using type = DeviceConv2d<Conv3d<F, Os...>, true>; };
template <int F, class... Os> struct Fusion<Cuda, Conv2d<F, Os...>> { using type = DeviceConv2d<Conv2d<F, Os...>, false>; };
template <int F, class... Os> struct Fusion<Cuda, Conv2d<F, Os...>, Relu> { using type = DeviceConv2d<Conv2d<F, Os...>, true>; };

}  // namespace skein::inline SKEIN_ABI::nn
