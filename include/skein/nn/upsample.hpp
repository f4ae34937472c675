// SPDX-License-Identifier: Apache-2.0
// Upsample<Factor>, Upsample<Factor, Bilinear>: an image of Factor times the height and width, PyTorch's Upsample(scale_factor,
// mode) with align_corners=False: the centre of output pixel o is at (o + 1/2) / Factor - 1/2 of the input. Backward gathers: a
// value of the input adds up the outputs that read it, so that no two indices write one value, and the order of the sum is fixed.
#pragma once
#include "../core/half.hpp"
#include "../ops/for_each.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI {

struct Nearest {};   ///< upsampling: each output pixel is the nearest of the input
struct Bilinear {};  ///< upsampling: between the four pixels around it; at the border the nearest ones

}  // namespace skein::inline SKEIN_ABI

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Along one side of `Size` values, enlarged by Factor. What output `o` reads of input `i`, as a share.
template <int Factor, bool Smooth> struct UpsampledSide {
  static constexpr int twice = 2 * Factor;

  /// The first of the (at most) two inputs that output o reads, and the share of the one behind it.
  static constexpr int first(int o) {
    if (!Smooth) return o / Factor;
    const int at = 2 * o + 1 - Factor;  // the place in the input, times 2 Factor
    return at > 0 ? at / twice : 0;
  }
  template <class Sum> static constexpr Sum second_share(int o, int size) {
    const int at = 2 * o + 1 - Factor;
    return Smooth && at > 0 && first(o) + 1 < size ? static_cast<Sum>(at % twice) / static_cast<Sum>(twice) : Sum(0);
  }
  template <class Sum> static constexpr Sum share(int o, int i, int size) {
    const Sum second = second_share<Sum>(o, size);
    return first(o) == i ? 1 - second : first(o) + 1 == i ? second : Sum(0);
  }
  /// The outputs that may read input i.
  static constexpr int begin(int i) { return Smooth && i > 0 ? (i - 1) * Factor : i * Factor; }
  static constexpr int end(int i, int size) { return (i + (Smooth && i + 1 < size ? 2 : 1)) * Factor; }
};

/// An image whose every side is enlarged.
template <int Height, int Width, int Channels, int Factor, bool Smooth> struct Upsampled {
  static constexpr int height = Height, width = Width, channels = Channels, factor = Factor;
  static constexpr bool smooth = Smooth;
  using Side = UpsampledSide<Factor, Smooth>;
};

/// What sums are taken in.
template <class Value> using UpsampleSum = std::conditional_t<std::same_as<Value, double>, double, float>;

/// `Each` values of the output for an index: all channels of a pixel on the host, one value on a GPU.
template <class Image, int Each, class Value> struct UpsamplePixels {
  const Value* x;
  Value* y;
  constexpr void operator()(long i) const {
    using I = Image;
    using Sum = UpsampleSum<Value>;
    constexpr int rows = I::height * I::factor, columns = I::width * I::factor;
    const long pixel = i * Each / I::channels, channel = i * Each % I::channels;
    const int column = static_cast<int>(pixel % columns), row = static_cast<int>(pixel / columns % rows);
    const Value* from = x + pixel / columns / rows * (1L * I::height * I::width * I::channels) +
                        (1L * I::Side::first(row) * I::width + I::Side::first(column)) * I::channels + channel;
    Value* to = y + i * Each;
    if constexpr (!I::smooth) {
      for (int k = 0; k < Each; ++k) to[k] = from[k];
    } else {
      const Sum down = I::Side::template second_share<Sum>(row, I::height),
                right = I::Side::template second_share<Sum>(column, I::width);
      const long below = down > 0 ? I::width * I::channels : 0, beside = right > 0 ? I::channels : 0;
      for (int k = 0; k < Each; ++k) {
        const Sum above = static_cast<Sum>(from[k]) * (1 - right) + static_cast<Sum>(from[beside + k]) * right,
                  under = static_cast<Sum>(from[below + k]) * (1 - right) + static_cast<Sum>(from[below + beside + k]) * right;
        to[k] = static_cast<Value>(above * (1 - down) + under * down);
      }
    }
  }
};

/// `Each` values of the input's gradient.
template <class Image, int Each, class Value> struct DownsamplePixels {
  const Value* dy;
  Value* dx;
  constexpr void operator()(long i) const {
    using I = Image;
    using Sum = UpsampleSum<Value>;
    constexpr int rows = I::height * I::factor, columns = I::width * I::factor;
    const long pixel = i * Each / I::channels, channel = i * Each % I::channels;
    const int column = static_cast<int>(pixel % I::width), row = static_cast<int>(pixel / I::width % I::height);
    const Value* image = dy + pixel / I::width / I::height * (1L * rows * columns * I::channels) + channel;
    Sum sums[Each] = {};
    for (int r = I::Side::begin(row); r < I::Side::end(row, I::height); ++r)
      for (int c = I::Side::begin(column); c < I::Side::end(column, I::width); ++c) {
        const Sum share = I::Side::template share<Sum>(r, row, I::height) * I::Side::template share<Sum>(c, column, I::width);
        if (share == 0) continue;
        const Value* from = image + (1L * r * columns + c) * I::channels;
        for (int k = 0; k < Each; ++k) sums[k] += share * static_cast<Sum>(from[k]);
      }
    for (int k = 0; k < Each; ++k) dx[i * Each + k] = static_cast<Value>(sums[k]);
  }
};
}  // namespace detail

/// An image (h, w, c) becomes (Factor h, Factor w, c). Options: Nearest (the default) or Bilinear. Refuses what is no image.
template <int Factor, class... Options> struct Upsample {
  using options = detail::LayerOptions<List<detail::OneOf<Nearest, Bilinear>>, Options...>;
  static_assert(Factor > 0, "Upsample<Factor>: the Factor is at least 1");
  static constexpr bool smooth = detail::has_option<Bilinear>(options{});

  static constexpr LayerInfo describe(Extents in) {
    if (!in.image()) return {.output = {3, {1, 1, 1}}, .fault = Fault::wants_image};
    const Extents output{3, {Factor * in.height(), Factor * in.width(), in.channels()}};
    return {.output = output, .flops = (smooth ? 8 : 1) * output.count()};
  }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  template <class In, class Frame> static void forward(Frame& f) {
    constexpr int each = on_host<typename Frame::Device> ? In::extents.channels() : 1;
    ops::for_each<typename Frame::Device>(f.batch * In::count / each * Factor * Factor,
                                          detail::UpsamplePixels<Image<In>, each, typename Frame::Activation>{f.x, f.y});
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr int each = on_host<typename Frame::Device> ? In::extents.channels() : 1;
    if (f.dx)
      ops::for_each<typename Frame::Device>(f.batch * In::count / each,
                                            detail::DownsamplePixels<Image<In>, each, typename Frame::Activation>{f.dy, f.dx});
  }

 private:
  template <class In> using Image =
      detail::Upsampled<In::extents.height(), In::extents.width(), In::extents.channels(), Factor, smooth>;
};

}  // namespace skein::inline SKEIN_ABI::nn
