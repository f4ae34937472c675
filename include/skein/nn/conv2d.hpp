// SPDX-License-Identifier: Apache-2.0
// Conv1d, Conv2d and Conv3d<Filters, Kernel<K>, ...>: convolution of a sequence, an image or a volume with windows of K positions
// along each of its dimensions, PyTorch's semantics and default initial values. The weight is stored (window, in_channels /
// groups, filters), where the window of Conv3d is one extent of K^3.
#pragma once
#include <string_view>

#include "../ops/conv2d.hpp"
#include "convolution_call.hpp"
#include "layer.hpp"
#include "options.hpp"
#include "output_kind.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// A convolution along the first Dimensions extents of its input.
template <int Dimensions, int Filters, class... Options> struct Convolution {
  using options = LayerOptions<List<Required<Kernel<1>>, Stride<1>, Padding<0>, Dilation<1>, Groups<1>, NoBias,
                                    WeightInit<Init::fan_in_uniform>, BiasInit<Init::fan_in_uniform>>,
                               Options...>;
  static constexpr OutputKind gives = OutputKind::logits;
  static constexpr int filters = Filters;
  static constexpr int kernel_size = detail::option<Kernel>(options{});
  static constexpr int stride = detail::option<Stride>(options{});
  static constexpr int padding = detail::option<Padding>(options{});
  static constexpr int dilation = detail::option<Dilation>(options{});
  static constexpr int groups = detail::option<Groups>(options{});
  static constexpr bool has_bias = !detail::has_option<NoBias>(options{});
  static constexpr Init weight_init = detail::option<WeightInit>(options{}), bias_init = detail::option<BiasInit>(options{});
  static_assert(Filters > 0, "a convolution, such as Conv2d<Filters, ...>, has at least one filter");

  static constexpr ops::Conv2dGeometry geometry(Extents in) {
    const bool fits = in.rank == Dimensions + 1;
    ops::Conv2dGeometry g{1, 1, in.channels(), Filters, kernel_size, stride, padding, dilation, groups, Dimensions, 1};
    g.width = fits ? in[Dimensions - 1] : 1;
    if (Dimensions > 1 && fits) g.height = in[Dimensions - 2];
    if (Dimensions > 2 && fits) g.depth = in[0];
    return g;
  }
  static constexpr LayerInfo describe(Extents in) {
    const ops::Conv2dGeometry g = geometry(in);
    constexpr int k = kernel_size;
    LayerInfo i;
    i.output = Dimensions == 1   ? Extents{2, {g.out_width(), Filters}}
               : Dimensions == 2 ? Extents{3, {g.out_height(), g.out_width(), Filters}}
                                 : Extents{4, {g.out_depth(), g.out_height(), g.out_width(), Filters}};
    const Extents weight = Dimensions == 2 ? Extents{4, {k, k, g.group_channels(), Filters}}
                                           : Extents{3, {g.window_count(), g.group_channels(), Filters}};
    const long fan_in = g.weight_rows(), fan_out = 1L * g.window_count() * Filters;
    i.parameters[0] = {.name = "weight", .extents = weight, .init = weight_init, .fan_in = fan_in, .fan_out = fan_out};
    if (has_bias)
      i.parameters[1] = {
          .name = "bias", .extents = {1, {Filters}}, .init = bias_init, .fan_in = fan_in, .fan_out = fan_out, .decay = false};
    i.flops = g.flops();
    i.saves_input = true;
    if (groups == 1) i.curvature[0] = {fan_in + (has_bias ? 1 : 0), Filters};
    if (in.rank != Dimensions + 1)
      i.fault = Dimensions == 1 ? Fault::wants_sequence : Dimensions == 2 ? Fault::wants_image : Fault::wants_volume;
    else if (!g.fits()) i.fault = Fault::window_too_large;
    else if (in.channels() % groups != 0 || Filters % groups != 0) i.fault = Fault::groups_do_not_divide;
    return i;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return ops::conv2d_needs<Device>(geometry(in)); }

  template <class In, class Frame> static void forward(Frame& f) { Op<In, Frame>::forward(call<In>(f)); }
  template <class In, class Frame> static void backward(Frame& f) { Op<In, Frame>::backward(call<In>(f)); }
  template <class In, class Frame> static void pack_weights(Frame& f) {
    const Worker& w = f.context->worker;
    if (f.ordinal % w.count == w.index) Op<In, Frame>::pack_weights(call<In>(f));  // layers are shared out among the workers
  }
  template <class In, class Frame> static void prepare(Frame& f) { Op<In, Frame>::prepare(f.batch); }
  /// Which kernel runs this layer.
  template <class In, class Frame> static constexpr std::string_view kernel() { return Op<In, Frame>::name; }

  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
    constexpr ops::Conv2dGeometry g = geometry(In::extents);
    constexpr long pixels = g.out_pixels();
    sums.images(g, f.x, f.batch);
    sums.gradients(f.dy, f.batch * pixels, Filters, sums.mean_of_pixels(pixels));
  }

  /// The layer's memory as the operation wants it.
  template <class In, class Frame> static ops::Conv2dCall<typename Frame::Scalar> call(Frame& f) {
    constexpr ops::Conv2dGeometry g = geometry(In::extents);
    return detail::convolution_call<has_bias>(f, g.weight_rows() * g.weight_pitch());
  }

 private:
  template <class In, class Frame> using Op = ops::Conv2d<typename Frame::Device, typename Frame::Scalar, geometry(In::extents)>;
};
}  // namespace detail

/// An image (h, w, c) becomes (h', w', Filters), h' = (h + 2 padding - dilation (kernel - 1) - 1) / stride + 1. Options:
/// Kernel<K> (must be given), Stride<1>, Padding<0>, Dilation<1>, Groups<1> (as many as channels: depthwise), NoBias,
/// WeightInit<>, BiasInit<>. Refuses what is no image, a window larger than the padded image, and groups that do not divide
/// channels and filters.
template <int Filters, class... Options> struct Conv2d : detail::Convolution<2, Filters, Options...> {};

/// A convolution of a sequence, with Conv2d's options: (steps, c) becomes (steps', Filters). The weight is (kernel, c / groups,
/// Filters).
template <int Filters, class... Options> struct Conv1d : detail::Convolution<1, Filters, Options...> {};

/// A convolution of a volume, with Conv2d's options: (d, h, w, c) becomes (d', h', w', Filters). The weight is (kernel^3, c /
/// groups, Filters), the window by slices, rows and columns.
template <int Filters, class... Options> struct Conv3d : detail::Convolution<3, Filters, Options...> {};

}  // namespace skein::inline SKEIN_ABI::nn
