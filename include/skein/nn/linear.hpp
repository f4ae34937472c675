// SPDX-License-Identifier: Apache-2.0
// Linear: y = x W + b on flat samples. The weight is stored (in, out), so that outputs are contiguous; PyTorch stores the
// transposed one. Default initial values are PyTorch's: uniform within 1 / sqrt(in), weight and bias alike.
#pragma once
#include "../ops/dense.hpp"
#include "layer.hpp"
#include "options.hpp"
#include "output_kind.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// N outputs. Options: NoBias, WeightInit<Init::...>, BiasInit<Init::...>.
template <int N, class... Options> struct Linear {
  using options =
      detail::LayerOptions<List<NoBias, WeightInit<Init::fan_in_uniform>, BiasInit<Init::fan_in_uniform>>, Options...>;
  static_assert(N > 0, "Linear needs at least one output");
  static constexpr OutputKind gives = OutputKind::logits;
  static constexpr bool has_bias = !detail::has_option<NoBias>(options{});
  static constexpr Init weight_init = detail::option<WeightInit>(options{}), bias_init = detail::option<BiasInit>(options{});

  static constexpr LayerInfo describe(Extents in) {
    const int k = static_cast<int>(in.count());
    LayerInfo info;
    info.output = {1, {N}};
    info.parameters[0] = {.name = "weight", .extents = {2, {k, N}}, .init = weight_init, .fan_in = k, .fan_out = N};
    if (has_bias)
      info.parameters[1] = {.name = "bias", .extents = {1, {N}}, .init = bias_init, .fan_in = k, .fan_out = N, .decay = false};
    info.flops = 2L * k * N;
    info.saves_input = true;
    info.overwrites_gradients = true;
    info.curvature[0] = {k + (has_bias ? 1L : 0L), N};
    info.fault = in.flat() ? Fault::none : Fault::wants_flat;
    return info;
  }

  template <class Device> static constexpr KernelNeeds needs(Extents in) {
    return ops::dense_needs<Device>(static_cast<int>(in.count()), N);
  }

  template <class In, class Frame> static void forward(Frame& f) { forward_with<In, ops::Keep>(f); }

  template <class In, class Frame> static void backward(Frame& f) {
    input_gradient<In>(f, f.dy);
    parameter_gradients<In>(f, f.dy, row_pitch(N), has_bias);
  }

  template <class In, class Frame> static void backward_input(Frame& f) { input_gradient<In>(f, f.dy); }
  template <class In, class Frame> static void backward_parameters(Frame& f) {
    parameter_gradients<In>(f, f.dy, row_pitch(N), has_bias);
  }

  /// The transposed copy that backward reads; each worker a part.
  template <class In, class Frame> static void pack_weights(Frame& f) {
    if constexpr (needs<typename Frame::Device>(In::extents).packed_weights > 0) {
      const auto [lo, hi] = f.context->worker.slice(N, 8);
      Kernels<In, Frame>::pack_weights(lo, hi, f.parameters, f.packed_weights);
    }
  }
  template <class In, class Frame> static void prepare(Frame& f) { prepare_with<In, ops::Keep>(f, has_bias); }
  template <class In, class Frame> static constexpr std::string_view kernel() { return Kernels<In, Frame>::kernel(); }
  template <class Device, class Activation> static constexpr bool computes_in = ops::dense_computes_in<Device, Activation>;

  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
    add_factors<In>(f, f.dy, sums);
  }

  // ---- the parts, for composites

  /// dy: (batch, row_pitch(N)), of the product.
  template <class In, class Frame, class Sums>
  static void add_factors(const Frame& f, const typename Frame::Activation* dy, const Sums& sums) {
    sums.inputs(f.x, f.batch, In::count, row_pitch(In::count));
    sums.gradients(dy, f.batch, row_pitch(N));
  }

  template <class In, class Frame> using Kernels =
      ops::Dense<typename Frame::Device, typename Frame::Scalar, static_cast<int>(In::count), N>;
  template <class In> static constexpr long bias_at = In::count* row_pitch(N);

  template <class In, class Frame> static Kernels<In, Frame> kernels(const Frame& f) {
    return Kernels<In, Frame>(ops::DenseOptions{.tf32 = f.context && f.context->math == FloatMath::tf32});
  }
  /// What the products read: the weight and the bias behind it, in the type of the samples.
  template <class Frame> static const typename Frame::Activation* weights(const Frame& f) {
    if constexpr (std::is_same_v<typename Frame::Activation, typename Frame::Scalar>) return f.parameters;
    else return f.weights;
  }
  template <class In, class Frame> static const typename Frame::Activation* bias(const Frame& f) {
    return has_bias ? weights(f) + bias_at<In> : nullptr;
  }
  template <class In, class Finish, class Frame> static void forward_with(Frame& f) {
    kernels<In>(f).template forward<Finish>(f.batch, f.x, weights(f), f.packed_weights, bias<In>(f), f.y);
  }
  template <class In, class Finish, class Frame> static void prepare_with(Frame& f, bool sums_bias) {
    auto* db = sums_bias ? f.gradients + bias_at<In> : nullptr;
    kernels<In>(f).template prepare<Finish>(f.batch, weights(f), bias<In>(f), f.gradients, db);
  }
  /// f.dx where somebody wants it. dy: (batch, row_pitch(N)).
  template <class In, class Frame> static void input_gradient(Frame& f, const typename Frame::Activation* dy) {
    if (f.dx) kernels<In>(f).input_gradient(f.batch, dy, weights(f), f.packed_weights, f.workspace, f.dx);
  }
  /// Adds the gradient of the weight, and of the bias where `sums_bias`. dy: (batch, dy_pitch), of this worker's slice.
  template <class In, class Frame>
  static void parameter_gradients(Frame& f, const typename Frame::Activation* dy, long dy_pitch, bool sums_bias) {
    const auto& context = *f.context;
    ops::DenseGradients<typename Frame::Scalar, typename Frame::Activation> g{
        .batch = f.batch, .x = f.x, .dy = dy, .dw = f.gradients, .accumulate = context.accumulate};
    if (sums_bias) g.db = f.gradients + bias_at<In>;
    if constexpr (needs<typename Frame::Device>(In::extents).splits_gradients) {
      if (context.split_gradients()) {  // all samples, a part of the columns
        g.batch = context.total;
        g.x = context.whole(f.x, row_pitch(In::count));
        g.dy = context.whole(dy, dy_pitch);
        context.worker.barrier();
        kernels<In>(f).gradients(g, {context.worker.index, context.worker.count});
        context.worker.barrier();
        return;
      }
    }
    kernels<In>(f).gradients(g);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
