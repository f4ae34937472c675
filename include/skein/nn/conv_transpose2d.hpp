// SPDX-License-Identifier: Apache-2.0
// ConvTranspose2d<Filters, Kernel<K>, ...>: the transposed convolution of an image, which enlarges it by its stride: PyTorch's
// semantics and default initial values. The weight is that of the convolution which it transposes, and which has Filters channels
// and as many filters as our input has channels: (kernel, kernel, Filters / groups, in_channels).
#pragma once
#include <algorithm>
#include <string_view>

#include "../ops/conv_transpose2d.hpp"
#include "convolution_call.hpp"
#include "layer.hpp"
#include "options.hpp"
#include "output_kind.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// An image (h, w, c) becomes (h', w', Filters), h' = (h - 1) stride - 2 padding + dilation (kernel - 1) + output padding + 1.
/// Options: Kernel<K> (must be given), Stride<1>, Padding<0>, OutputPadding<0> (less than the stride), Dilation<1>, Groups<1>,
/// NoBias, WeightInit<>, BiasInit<>. Refuses what is no image, and groups that do not divide channels and filters.
template <int Filters, class... Options> struct ConvTranspose2d {
  using options = detail::LayerOptions<List<detail::Required<Kernel<1>>, Stride<1>, Padding<0>, OutputPadding<0>, Dilation<1>,
                                            Groups<1>, NoBias, WeightInit<Init::fan_in_uniform>, BiasInit<Init::fan_in_uniform>>,
                                       Options...>;
  static constexpr OutputKind gives = OutputKind::logits;
  static constexpr int kernel_size = detail::option<Kernel>(options{});
  static constexpr int stride = detail::option<Stride>(options{});
  static constexpr int padding = detail::option<Padding>(options{});
  static constexpr int output_padding = detail::option<OutputPadding>(options{});
  static constexpr int dilation = detail::option<Dilation>(options{});
  static constexpr int groups = detail::option<Groups>(options{});
  static constexpr bool has_bias = !detail::has_option<NoBias>(options{});
  static constexpr Init weight_init = detail::option<WeightInit>(options{}), bias_init = detail::option<BiasInit>(options{});
  static_assert(Filters > 0, "ConvTranspose2d<Filters, ...>: at least one filter");
  static_assert(output_padding < stride,
                "ConvTranspose2d: OutputPadding is less than the stride: it chooses among the sizes that a convolution of this "
                "stride makes equal");

  /// A side of the output; below 1: there is none.
  static constexpr int length(int in) {
    return (in - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1;
  }
  /// The geometry of the convolution that is transposed: its input is our output.
  static constexpr ops::Conv2dGeometry geometry(Extents in) {
    const bool image = in.image();
    return {std::max(1, length(image ? in.height() : 1)),
            std::max(1, length(image ? in.width() : 1)),
            Filters,
            in.channels(),
            kernel_size,
            stride,
            padding,
            dilation,
            groups};
  }
  static constexpr LayerInfo describe(Extents in) {
    const ops::Conv2dGeometry g = geometry(in);
    LayerInfo i{.output = {3, {g.height, g.width, Filters}}};
    const long fan_in = g.weight_rows(), fan_out = 1L * g.window_count() * g.filters;  // as PyTorch counts them
    i.parameters[0] = {.name = "weight",
                       .extents = {4, {kernel_size, kernel_size, g.group_channels(), g.filters}},
                       .init = weight_init,
                       .fan_in = fan_in,
                       .fan_out = fan_out};
    if (has_bias)
      i.parameters[1] = {
          .name = "bias", .extents = {1, {Filters}}, .init = bias_init, .fan_in = fan_in, .fan_out = fan_out, .decay = false};
    i.flops = g.flops();
    i.saves_input = true;
    if (!in.image()) i.fault = Fault::wants_image;
    else if (length(in.height()) < 1 || length(in.width()) < 1) i.fault = Fault::no_output;
    else if (in.channels() % groups != 0 || Filters % groups != 0) i.fault = Fault::groups_do_not_divide;
    return i;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) {
    return ops::conv_transpose2d_needs<Device>(geometry(in));
  }

  template <class In, class Frame> static void forward(Frame& f) { Op<In, Frame>::forward(call<In>(f)); }
  template <class In, class Frame> static void backward(Frame& f) { Op<In, Frame>::backward(call<In>(f)); }
  template <class In, class Frame> static void pack_weights(Frame& f) {
    const Worker& w = f.context->worker;
    if (f.ordinal % w.count == w.index) Op<In, Frame>::pack_weights(call<In>(f));  // layers are shared out among the workers
  }
  template <class In, class Frame> static void prepare(Frame& f) { Op<In, Frame>::prepare(f.batch); }
  /// Which kernel runs this layer.
  template <class In, class Frame> static constexpr std::string_view kernel() { return Op<In, Frame>::name; }

 private:
  template <class In, class Frame> using Op =
      ops::ConvTranspose2d<typename Frame::Device, typename Frame::Scalar, geometry(In::extents)>;

  template <class In, class Frame> static ops::Conv2dCall<typename Frame::Scalar> call(Frame& f) {
    constexpr ops::Conv2dGeometry g = geometry(In::extents);
    return detail::convolution_call<has_bias>(f, g.weight_rows() * g.weight_pitch());
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
