// SPDX-License-Identifier: Apache-2.0
// LinearActivation: Linear and an activation that knows its derivative from its output (Relu, LeakyRelu, Sigmoid, Tanh, own ones)
// as one layer. The activation is applied while the product is still in registers; backward makes the gradient in front of it in
// the pass that sums the bias gradient.
#pragma once
#include "../elementwise.hpp"
#include "../fusion.hpp"
#include "../linear.hpp"

namespace skein::inline SKEIN_ABI::nn {

template <class Product, class Activation> struct LinearActivation;

/// Parameters are those of the Linear. Keeps its input, its output, and the gradient between product and activation.
template <int N, class... Options, class Activation> struct LinearActivation<Linear<N, Options...>, Activation> {
  using Base = Linear<N, Options...>;
  using Function = typename Activation::function;

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = Base::describe(in);
    info.saved_for_backward = row_pitch(N);  // the gradient before the activation
    info.saved_by_backward = true;
    info.flops += N;
    info.saves_output = true;
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return Base::template needs<Device>(in); }
  template <class In, class Frame> static void forward(Frame& f) { Base::template forward_with<In, detail::Value<Function>>(f); }

  template <class In, class Frame> static void backward(Frame& f) {
    backward_input<In>(f);
    backward_parameters<In>(f);
  }
  /// Sums the bias gradient on its way, unless that is divided among the workers.
  template <class In, class Frame> static void backward_input(Frame& f) {
    auto* sums = Base::has_bias && !split<In>(f) ? f.gradients + Base::template bias_at<In> : nullptr;
    ops::chain_and_sum<typename Frame::Device, N, detail::Chain<Function>>(f.batch, f.dy, f.y, between(f), sums,
                                                                           f.context->accumulate);
    Base::template input_gradient<In>(f, between(f));
  }
  template <class In, class Frame> static void backward_parameters(Frame& f) {
    Base::template parameter_gradients<In>(f, between(f), row_pitch(N), Base::has_bias && split<In>(f));
  }
  /// The gradient between product and activation is what backward has saved.
  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
    Base::template add_factors<In>(f, between(f), sums);
  }
  template <class In, class Frame> static void pack_weights(Frame& f) { Base::template pack_weights<In>(f); }
  template <class In, class Frame> static void prepare(Frame& f) {
    Base::template prepare_with<In, detail::Value<Function>>(f, false);
  }
  template <class In, class Frame> static constexpr std::string_view kernel() { return Base::template kernel<In, Frame>(); }
  template <class Device, class Sample> static constexpr bool computes_in = Base::template computes_in<Device, Sample>;

 private:
  template <class In, class Frame> static bool split(const Frame& f) {
    return f.context->split_gradients() && needs<typename Frame::Device>(In::extents).splits_gradients;
  }
  /// The gradient between product and activation: of the samples' type, which is not wider.
  template <class Frame> static auto* between(const Frame& f) {
    return reinterpret_cast<typename Frame::Activation*>(f.saved_for_backward);
  }
};

template <int N, class... Options, ElementwiseLayer Activation>
requires KnowsDerivativeFromOutput<typename Activation::function>
struct Fusion<Cpu, Linear<N, Options...>, Activation> {
  using type = LinearActivation<Linear<N, Options...>, Activation>;
};

}  // namespace skein::inline SKEIN_ABI::nn
