// SPDX-License-Identifier: Apache-2.0
// ZeroPad2d<P>: an image with zeros around it; with options also every S-th pixel of that, and channels of zeros: the shortcut of
// a residual network that has no parameters (option A of He et al., CVPR 2016).
#pragma once
#include "../core/half.hpp"
#include "../ops/for_each.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Where values of an image go in a padded one, and every which pixel stays.
template <int Height, int Width, int Channels, int Border, int Before, int After, int Step> struct PaddedImage {
  static constexpr int height = Height, width = Width, channels = Channels, border = Border, before = Before, step = Step;
  static constexpr int out_height = (Height + 2 * Border - 1) / Step + 1, out_width = (Width + 2 * Border - 1) / Step + 1;
  static constexpr int out_channels = Before + Channels + After;
};

/// `Each` values of the output for an index: all channels of a pixel on the host, one value on a GPU.
template <class Image, int Each, class Value> struct PadPixels {
  const Value* x;
  Value* y;
  long x_pitch, y_pitch;  // from sample to sample
  constexpr void operator()(long i) const {
    using I = Image;
    const long first = i * Each, pixel = first / I::out_channels, channel = first % I::out_channels;
    const long sample = pixel / (I::out_height * I::out_width), at = pixel % (I::out_height * I::out_width);
    const long row = at / I::out_width * I::step - I::border, column = at % I::out_width * I::step - I::border;
    const bool inside = row >= 0 && row < I::height && column >= 0 && column < I::width;
    const Value* from = x + sample * x_pitch + (inside ? (row * I::width + column) * I::channels : 0);
    Value* to = y + sample * y_pitch + at * I::out_channels + channel;
    if constexpr (Each == I::out_channels) {  // loops without a condition, which become vectors
      for (int k = 0; k < I::out_channels; ++k) to[k] = Value(0);
      for (int k = 0; inside && k < I::channels; ++k) to[I::before + k] = from[k];
    } else {
      for (int k = 0; k < Each; ++k) {
        const long c = channel + k - I::before;
        to[k] = inside && c >= 0 && c < I::channels ? from[c] : Value(0);
      }
    }
  }
};
/// `Each` values of the input's gradient.
template <class Image, int Each, class Value> struct UnpadPixels {
  const Value* dy;
  Value* dx;
  long x_pitch, y_pitch;
  constexpr void operator()(long i) const {
    using I = Image;
    const long first = i * Each, pixel = first / I::channels, channel = first % I::channels;
    const long sample = pixel / (I::height * I::width), at = pixel % (I::height * I::width);
    const long row = at / I::width + I::border, column = at % I::width + I::border;
    const bool taken = row % I::step == 0 && column % I::step == 0;
    const long from = (row / I::step * I::out_width + column / I::step) * I::out_channels + I::before + channel;
    Value* to = dx + sample * x_pitch + at * I::channels + channel;
    const Value* gradient = dy + sample * y_pitch + (taken ? from : 0);
    if (taken)
      for (int k = 0; k < Each; ++k) to[k] = gradient[k];
    else
      for (int k = 0; k < Each; ++k) to[k] = Value(0);
  }
};
}  // namespace detail

/// An image (h, w, c) becomes (h + 2 P, w + 2 P, c). Options: Stride<S>: of that every S-th row and column, the first among them;
/// ZeroChannels<Before, After>: so many channels of zeros around the image's own.
template <int P, class... Options> struct ZeroPad2d {
  using options = detail::LayerOptions<List<Stride<1>, ZeroChannels<0, 0>>, Options...>;
  static constexpr int border = P, stride = detail::option<Stride>(options{});
  static constexpr detail::OptionPair zeros = detail::option<ZeroChannels>(options{});
  static constexpr int before = zeros.first, after = zeros.second;
  static_assert(P >= 0, "ZeroPad2d<P>: P is at least 0");

  static constexpr LayerInfo describe(Extents in) {
    if (!in.image()) return {.output = {3, {1, 1, 1}}, .fault = Fault::wants_image};
    return {.output = {3, {side(in.height()), side(in.width()), before + in.channels() + after}}};
  }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  template <class In, class Frame> static void forward(Frame& f) {
    constexpr int each = on_host<typename Frame::Device> ? Image<In>::out_channels : 1;
    constexpr long count = 1L * Image<In>::out_height * Image<In>::out_width * Image<In>::out_channels;
    ops::for_each<typename Frame::Device>(f.batch * count / each, detail::PadPixels<Image<In>, each, typename Frame::Activation>{
                                                                      f.x, f.y, sample_pitch(In::extents), out_pitch<In>()});
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr int each = on_host<typename Frame::Device> ? Image<In>::channels : 1;
    if (f.dx)
      ops::for_each<typename Frame::Device>(f.batch * In::count / each,
                                            detail::UnpadPixels<Image<In>, each, typename Frame::Activation>{
                                                f.dy, f.dx, sample_pitch(In::extents), out_pitch<In>()});
  }

 private:
  static constexpr int side(int n) { return (n + 2 * P - 1) / stride + 1; }
  template <class In> using Image =
      detail::PaddedImage<In::extents.height(), In::extents.width(), In::extents.channels(), P, before, after, stride>;
  template <class In> static constexpr long out_pitch() { return sample_pitch(describe(In::extents).output); }
};

}  // namespace skein::inline SKEIN_ABI::nn
