// SPDX-License-Identifier: Apache-2.0
// What a GPU runs for Linear with an activation behind it: one composite, whose
// product applies ReLU, or GELU in its form with tanh, in its own kernel. (cuBLASLt's GELU is that form: the exact one, and that
// of strict floats, is a kernel behind.)
#pragma once
#include "../../ops/cuda/dense.hpp"
#include "../fused/linear_activation.hpp"
#include "../gelu.hpp"
#include "../relu.hpp"

namespace skein::inline SKEIN_ABI::ops::cublas {
template <> inline constexpr Activation activation_of<nn::detail::Value<nn::ReluFunction>> = Activation::relu;
template <> inline constexpr Activation activation_of<nn::detail::Value<nn::GeluFunction<nn::TanhForm>>> = Activation::gelu;
}  // namespace skein::inline SKEIN_ABI::ops::cublas

namespace skein::inline SKEIN_ABI::nn {

template <class Product, class Activation> struct LinearGelu;

/// Linear and an activation that needs its input in backward. Keeps that input, which becomes the gradient in front of it.
template <int N, class... Options, class Activation> struct LinearGelu<Linear<N, Options...>, Activation> {
  using Base = Linear<N, Options...>;
  using Function = typename Activation::function;

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = Base::describe(in);
    info.saved_for_backward = row_pitch(N);
    info.flops += N;
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return Base::template needs<Device>(in); }
  template <class In, class Frame> static void forward(Frame& f) {
    auto* before = reinterpret_cast<typename Frame::Activation*>(f.saved_for_backward);
    const auto dense = Base::template kernels<In>(f);
    dense.template forward_keeping<detail::Value<Function>>(f.batch, f.x, Base::weights(f), Base::template bias<In>(f), before,
                                                            f.y);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    auto* sums = Base::has_bias ? f.gradients + Base::template bias_at<In> : nullptr;
    auto* before = reinterpret_cast<typename Frame::Activation*>(f.saved_for_backward);
    ops::chain_and_sum<typename Frame::Device, N, detail::Chain<Function>>(f.batch, f.dy, before, before, sums,
                                                                           f.context->accumulate);
    Base::template input_gradient<In>(f, before);
    Base::template parameter_gradients<In>(f, before, row_pitch(N), false);
  }
  template <class In, class Frame> static void prepare(Frame& f) {
    Base::template prepare_with<In, detail::Value<Function>>(f, false);
  }
  template <class In, class Frame> static constexpr std::string_view kernel() { return Base::template kernel<In, Frame>(); }
  template <class Device, class Sample> static constexpr bool computes_in = Base::template computes_in<Device, Sample>;
};

template <int N, class... Options, ElementwiseLayer Activation>
requires KnowsDerivativeFromOutput<typename Activation::function>
struct Fusion<Cuda, Linear<N, Options...>, Activation> {
  using type = LinearActivation<Linear<N, Options...>, Activation>;
};
template <int N, class... Options> struct Fusion<Cuda, Linear<N, Options...>, BasicGelu<TanhForm>> {
  using type = LinearGelu<Linear<N, Options...>, BasicGelu<TanhForm>>;
};

}  // namespace skein::inline SKEIN_ABI::nn
