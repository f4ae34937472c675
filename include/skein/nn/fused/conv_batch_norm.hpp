// SPDX-License-Identifier: Apache-2.0
// ConvBatchNorm: Conv2d, BatchNorm and Conv2d, BatchNorm, Relu as one layer. The output of the convolution is kept for backward,
// in place of the normalised one. At the end of a residual block's body the sum and the ReLU behind it belong to its passes too
// (rectified_residual.hpp).
#pragma once
#include "../../ops/conv_batch_norm.hpp"
#include "../batch_norm.hpp"
#include "../conv2d.hpp"
#include "../fusion.hpp"
#include "../relu.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Parameters and buffers are those of Convolution, then those of Norm. HasRelu: there is a Relu behind them.
template <class Convolution, class Norm, bool HasRelu> struct ConvBatchNorm {
  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = Convolution::describe(in);
    const LayerInfo norm = Norm::describe(info.output);
    const auto first = static_cast<std::size_t>(info.entries());
    for (std::size_t i = 0; i < 2; ++i) {
      info.parameters[first + i] = norm.parameters[i];
      info.buffers[i] = norm.buffers[i];
    }
    info.curvature[1] = norm.curvature[0];
    info.curvature[1].begin = Convolution::describe(in).stored_parameters();
    info.batch_statistics = 2 * norm.batch_statistics;  // scale and shift, too
    info.saved_for_backward = info.output.count();      // the convolution's output
    info.remakes_output = Remakes::from_saved;
    info.couples_batch = true;
    info.flops += norm.flops + (HasRelu ? info.output.count() : 0);
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) {
    return {ops::conv2d_packed_weights(Convolution::geometry(in)),
            ops::cpu::conv_batch_norm_workspace(Convolution::geometry(in))};
  }

  /// Its output can be the sum with an edge of the same shape, with a ReLU behind it.
  static constexpr bool joins_sum = !HasRelu;
  template <class In, class Frame> static constexpr bool adds_dx =
      ops::ConvBatchNorm<typename Frame::Device, typename Frame::Scalar, Convolution::geometry(In::extents)>::adds_dx;

  template <class In, class Frame> static void forward(Frame& f) {
    Op<In, Frame>::forward(convolution<In>(f), norm<In>(f), *f.context);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Op<In, Frame>::backward(convolution<In>(f), norm<In>(f), *f.context);
  }
  template <class In, class Frame> static void remake(Frame& f) { Op<In, Frame>::remake(norm<In>(f)); }
  /// The gradient of the convolution's output is made once more where the kernels go without it.
  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
    constexpr ops::Conv2dGeometry g = Convolution::geometry(In::extents);
    sums.images(g, f.x, f.batch);
    const auto call = norm<In>(f);
    auto* const room = sums.room(Op<In, Frame>::gradient_room);
    for (long n = 0; n < f.batch; ++n)
      sums.gradients(Op<In, Frame>::gradient(call, n, room), g.out_pixels(), Convolution::filters,
                     sums.mean_of_pixels(g.out_pixels()));
  }
  /// Adds the gradient of the normalisation's weight and bias over the samples of f to f.gradients, which holds them alone.
  template <class In, class Frame> static void unit_gradient(Frame& f) {
    auto n = norm<In>(f);
    n.fused = false;
    n.dweight = f.gradients;
    n.dbias = f.gradients + row_pitch(Convolution::filters);
    ops::BatchNormKernels<typename Frame::Device>::template backward<Convolution::filters, Convolution::filters>(n, *f.context);
  }
  template <class In, class Frame> static void pack_weights(Frame& f) { Convolution::template pack_weights<In>(f); }
  template <class In, class Frame> static void prepare(Frame& f) { Convolution::template prepare<In>(f); }
  template <class In, class Frame> static constexpr std::string_view kernel() { return Op<In, Frame>::name; }

 private:
  template <class In, class Frame> using Op =
      ops::ConvBatchNorm<typename Frame::Device, typename Frame::Scalar, Convolution::geometry(In::extents)>;
  template <class In> static constexpr ops::Conv2dGeometry geometry = Convolution::geometry(In::extents);
  template <class In> using Between = Shape<geometry<In>.out_height(), geometry<In>.out_width(), Convolution::filters>;

  template <class In, class Frame> static auto convolution(Frame& f) {
    auto c = Convolution::template call<In>(f);
    c.y = f.saved_for_backward;
    c.adds_dx = f.adds_dx;
    return c;
  }
  template <class In, class Frame> static auto norm(const Frame& f) {
    constexpr long stored = Convolution::describe(In::extents).stored_parameters();
    Frame g = f;
    g.parameters += stored;
    g.gradients += stored;
    g.x = f.saved_for_backward;
    g.ordinal += 1;  // an error names the normalisation
    g.workspace += whole_line(ops::conv2d_workspace(geometry<In>));
    auto n = Norm::template call<Between<In>, true>(g);
    n.has_relu = HasRelu || f.addend || f.dsum;
    n.addend = f.addend;
    n.dsum = f.dsum;
    n.fused = true;
    return n;
  }
};

template <int F, class... Os, class... Ns> struct Fusion<Cpu, Conv2d<F, Os...>, BatchNorm<Ns...>> {
  using type = ConvBatchNorm<Conv2d<F, Os...>, BatchNorm<Ns...>, false>;
};
template <int F, class... Os, class... Ns> struct Fusion<Cpu, Conv2d<F, Os...>, BatchNorm<Ns...>, Relu> {
  using type = ConvBatchNorm<Conv2d<F, Os...>, BatchNorm<Ns...>, true>;
};

}  // namespace skein::inline SKEIN_ABI::nn
