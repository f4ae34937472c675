// SPDX-License-Identifier: Apache-2.0
// Convolution on the GPU. cuDNN wants its filters as (filters, kernel, kernel, channels / groups), dense; the arena has (kernel,
// kernel, channels / groups, filters), rows padded, as every other parameter (ranks, files and optimizers see one layout). So
// pack_weights() makes a transposed copy after each change of the weights, bias behind it, and the filter's gradient, made in
// cuDNN's order in scratch memory, is transposed and added by one small kernel: about 3 passes over the weights a step. Doubles,
// and what cuDNN has no deterministic kernel for, run in plain loops on the weights as they are; few channels have kernels of
// their own, which read the weights as they are too.
#pragma once
#include "../conv2d.hpp"
#include "conv2d_cudnn.hpp"
#include "conv2d_few_channels.hpp"
#include "conv2d_kernels.hpp"
#include "transpose.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The memory of a call on the GPU. Value: of images and packed filters (float, double, bf16, fp16); Parameter: of the arenas.
template <class Value, class Parameter> struct DeviceConv2dCall {
  long batch = 0;
  const Value* x = nullptr;
  const Parameter* weight = nullptr;
  const Parameter* bias = nullptr;  ///< null: none
  Value* y = nullptr;               ///< read by backward where there is a ReLU
  const Value* dy = nullptr;
  Value* dx = nullptr;           ///< null: nobody wants it
  Parameter* dweight = nullptr;  ///< null: nobody wants it
  Parameter* dbias = nullptr;
  Value* packed_weights = nullptr;  ///< conv2d_device_packed_weights(g) values, 16-byte aligned
  cudnn::MathMode math = cudnn::MathMode::full;
  bool has_relu = false;  ///< y = relu(convolution + bias)
};

/// Where the bias lies behind the packed filters, and how many values both are.
constexpr long conv2d_bias_at(const Conv2dGeometry& g) { return whole_line(g.weight_rows() * g.filters); }
/// Values of the packed filters with the bias behind them.
constexpr long conv2d_device_packed_weights(const Conv2dGeometry& g) { return conv2d_bias_at(g) + g.weight_pitch(); }

/// Runs one geometry on the calling thread's stream; adds to dweight and dbias. The same bits in every run on one device.
template <class Value, class Parameter> struct DeviceConv2d {
  using Call = DeviceConv2dCall<Value, Parameter>;
  static constexpr bool by_cudnn = !std::is_same_v<Value, double>;
  /// Does this geometry have the kernels of few channels?
  static constexpr bool few_channels(const Conv2dGeometry& g) { return by_cudnn && FewChannels::takes(g); }
  /// Which kernels run, for people.
  static constexpr std::string_view name(const Conv2dGeometry& g) {
    return few_channels(g) ? "own kernels of few channels" : by_cudnn && g.dimensions != 3 ? "cuDNN" : "plain loops on the GPU";
  }

  static void pack_weights(const Conv2dGeometry& g, const Call& c) {
    if (few_channels(g)) return;
    if constexpr (by_cudnn) {
      const long rows = g.weight_rows();
      cuda::transpose<false>(rows, g.filters, c.weight, g.weight_pitch(), c.packed_weights, rows);
      if (c.bias)
        skein::cuda::for_each(g.filters, kernel::PackBias<Value, Parameter>{c.bias, c.packed_weights + conv2d_bias_at(g)});
    }
  }

  /// Chooses algorithms and reserves the workspace for this batch: then a step neither searches nor allocates.
  static void prepare(const Conv2dGeometry& g, long batch, bool bias, bool has_relu, cudnn::MathMode math) {
    if (batch <= 0) return;
    std::size_t forward = 0;
    if constexpr (by_cudnn)
      if (!few_channels(g)) {
        cudnn::Convolution& own = of(g, batch, math);
        const cudnn::FusedConvolution* fused = bias || has_relu ? own.fused(bias, has_relu) : nullptr;
        forward = std::max(own.forward_workspace(), fused ? fused->workspace() : 0);
      }
    skein::cuda::workspace().reserve(std::max(forward, Scratch(g, batch, has_relu, math).total));
  }

  static void forward(const Conv2dGeometry& g, const Call& c) {
    if (c.batch <= 0) return;
    if (few_channels(g)) {
      if (!skein::cuda::plain_kernels())
        return skein::cuda::for_each_block(
            c.batch, kernel::FewChannelsForward<Value, Parameter>{{FewChannels(g)}, c.x, c.weight, c.bias, c.y, c.has_relu});
    } else if constexpr (by_cudnn) {
      cudnn::Convolution& own = of(g, c.batch, c.math);
      const bool more = c.bias || c.has_relu;
      if (const cudnn::FusedConvolution* fused = more && aligned(c) ? own.fused(c.bias != nullptr, c.has_relu) : nullptr)
        return fused->run(c.x, c.packed_weights, c.bias ? c.packed_weights + conv2d_bias_at(g) : nullptr, c.y,
                          skein::cuda::workspace().get(fused->workspace()));
      if (own.has_forward()) {
        own.forward(c.x, c.packed_weights, c.y, skein::cuda::workspace().get(own.forward_workspace()));
        if (more) add_bias(g, c);
        return;
      }
    }
    skein::cuda::for_each(c.batch * g.out_count(),
                          kernel::PlainForward<Value, Parameter>{g, c.x, c.weight, c.bias, c.y, c.has_relu});
  }

  static void backward(const Conv2dGeometry& g, const Call& c) {
    if (c.batch <= 0) return;
    const Scratch scratch(g, c.batch, c.has_relu, c.math);
    auto* base = static_cast<std::byte*>(skein::cuda::workspace().get(scratch.total));
    auto* dz = reinterpret_cast<Value*>(base);
    if (c.dbias || c.has_relu)
      column_sums(c.batch * g.out_pixels(), g.filters, base + scratch.sums,
                  kernel::RectifiedGradient<Value>{c.dy, c.has_relu ? c.y : nullptr, dz},
                  kernel::AddBiasGradient<Parameter>{c.dbias});
    const Value* dy = c.has_relu ? dz : c.dy;
    if (few_channels(g)) return few_channels_backward(g, c, dy, reinterpret_cast<float*>(base + scratch.rest));
    if constexpr (by_cudnn) {
      const cudnn::Convolution& own = of(g, c.batch, c.math);
      void* rest = base + scratch.rest;
      if (c.dx && own.has_input_gradient()) own.input_gradient(c.packed_weights, dy, c.dx, rest);
      else if (c.dx) plain_input_gradient(g, c, dy);
      if (!c.dweight) return;
      if (!own.has_filter_gradient()) return plain_filter_gradient(g, c, dy);
      auto* dfilters = reinterpret_cast<Value*>(base + scratch.filters);
      own.filter_gradient(c.x, dy, dfilters, rest);
      cuda::transpose<true>(g.filters, g.weight_rows(), dfilters, g.weight_rows(), c.dweight, g.weight_pitch());
    } else {
      if (c.dx) plain_input_gradient(g, c, dy);
      if (c.dweight) plain_filter_gradient(g, c, dy);
    }
  }

 private:
  /// Backward's scratch memory: the gradient in front of a ReLU, column sums, the filter's gradient, cuDNN's own.
  struct Scratch {
    std::size_t sums = 0, filters = 0, rest = 0, total = 0;
    Scratch(const Conv2dGeometry& g, long batch, bool has_relu, cudnn::MathMode math) {
      const auto take = [this](std::size_t bytes) { return std::exchange(total, total + (bytes + 255) / 256 * 256); };
      if (has_relu) take(static_cast<std::size_t>(batch * g.out_count()) * sizeof(Value));
      sums = take(column_sums_bytes(batch * g.out_pixels(), g.filters));
      if (few_channels(g)) {
        rest = take(FewChannels(g).scratch_bytes(batch));
      } else if constexpr (by_cudnn) {
        const cudnn::Convolution& own = of(g, batch, math);
        filters = take(static_cast<std::size_t>(g.weight_rows() * g.filters) * sizeof(Value));
        rest = take(std::max(own.input_gradient_workspace(), own.filter_gradient_workspace()));
      }
    }
  };

  static void add_bias(const Conv2dGeometry& g, const Call& c) {
    const kernel::BiasRelu<Value, Parameter> pass{c.y, c.bias, c.has_relu};
    row_strips(c.batch * g.out_pixels(), g.filters, pass.aligned(), pass);
  }
  static cudnn::Convolution& of(const Conv2dGeometry& g, long batch, cudnn::MathMode math) {
    return cudnn::convolution(g, batch, cudnn::type_of<Value>, math);
  }
  /// The graph's plans are made for 16-byte aligned images and filters; slices of odd images may not be.
  static bool aligned(const Call& c) {
    return ((reinterpret_cast<std::uintptr_t>(c.x) | reinterpret_cast<std::uintptr_t>(c.y) |
             reinterpret_cast<std::uintptr_t>(c.packed_weights)) &
            15) == 0;
  }
  static void few_channels_backward(const Conv2dGeometry& g, const Call& c, const Value* dy, float* partial) {
    const FewChannels s(g);
    const bool plain = skein::cuda::plain_kernels();
    if (c.dx && plain) plain_input_gradient(g, c, dy);
    else if (c.dx)
      skein::cuda::for_each_block(c.batch, kernel::FewChannelsInputGradient<Value, Parameter>{{s}, dy, c.weight, c.dx});
    if (!c.dweight) return;
    if (plain) return plain_filter_gradient(g, c, dy);
    const long blocks = FewChannels::blocks(c.batch);
    skein::cuda::for_each_block(blocks, kernel::FewChannelsFilterGradient<Value>{{s}, c.batch, blocks, c.x, dy, partial});
    skein::cuda::for_each_row(1L * s.taps * s.filters, kernel::AddFewChannelsGradient<Parameter>{s, blocks, partial, c.dweight});
  }
  static void plain_input_gradient(const Conv2dGeometry& g, const Call& c, const Value* dy) {
    skein::cuda::for_each(c.batch * g.in_count(), kernel::PlainInputGradient<Value, Parameter>{g, dy, c.weight, c.dx});
  }
  static void plain_filter_gradient(const Conv2dGeometry& g, const Call& c, const Value* dy) {
    skein::cuda::for_each_row(g.weight_rows() * g.filters,
                              kernel::PlainFilterGradient<Value, Parameter>{g, c.batch, c.x, dy, c.dweight});
  }
};

/// A copy of the filters in cuDNN's order; the workspace is the library's.
template <> constexpr KernelNeeds conv2d_needs<Cuda>(const Conv2dGeometry& g) { return {conv2d_device_packed_weights(g)}; }

/// The interface: parameters and images of one type. c.packed_weights has as many scalars as `packed_weights` says; c.workspace
/// is not used.
template <class Scalar, Conv2dGeometry G> struct Conv2d<Cuda, Scalar, G> {
  using Kernel = DeviceConv2d<Scalar, Scalar>;
  static constexpr long packed_weights = conv2d_device_packed_weights(G), workspace = 0;
  static constexpr std::string_view name = Kernel::name(G);
  static void pack_weights(const Conv2dCall<Scalar>& c) { Kernel::pack_weights(G, call(c)); }
  static void prepare(long batch) { Kernel::prepare(G, batch, true, false, cudnn::MathMode::full); }
  static void forward(const Conv2dCall<Scalar>& c) { Kernel::forward(G, call(c)); }
  static void backward(const Conv2dCall<Scalar>& c) { Kernel::backward(G, call(c)); }

 private:
  static DeviceConv2dCall<Scalar, Scalar> call(const Conv2dCall<Scalar>& c) {
    return {c.batch, c.x, c.weight, c.bias, c.y, c.dy, c.dx, c.dweight, c.dbias, c.packed_weights};
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
