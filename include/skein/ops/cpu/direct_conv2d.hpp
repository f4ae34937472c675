// SPDX-License-Identifier: Apache-2.0
// Direct convolution of few channels, alone or fused with the ReLU and the max-pooling behind it: chooses between vectors over
// the filters and over the width, by how full the vectors are.
//
//     c the call, P the plan, n a sample, f a filter; x an image (height, width, channels), y its output (pixels, filters)
#pragma once
#include <string_view>

#include "direct_backward.hpp"
#include "direct_filters.hpp"
#include "direct_width.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Can direct kernels take this convolution at all?
constexpr bool takes_direct(const ConvReluPoolGeometry& g) {
  const Conv2dGeometry& c = g.conv;
  return c.dimensions == 2 && c.groups == 1 && c.dilation == 1 && c.padding < c.kernel && c.kernel <= 7 && c.filters <= 512 &&
         c.channels <= 512 && (c.filters > 4 || c.channels <= 8) && g.pool_kernel <= largest_max_pool &&
         g.pool_kernel >= g.pool_stride;
}

#if SKEIN_WITH_XSIMD
namespace detail {
constexpr std::string_view direct_name(bool width, bool relu, bool pooled) {
  if (pooled && relu)
    return width ? "direct over the width, with ReLU and pooling" : "direct over the filters, with ReLU and pooling";
  if (pooled) return width ? "direct over the width, with pooling" : "direct over the filters, with pooling";
  if (relu) return width ? "direct over the width, with ReLU" : "direct over the filters, with ReLU";
  return width ? "direct over the width" : "direct over the filters";
}
}  // namespace detail

/// Direct convolution, with the ReLU and max-pooling that the plan names: over the filters or over the width.
template <class Scalar, DirectPlan P> struct DirectConv2d {
 private:
  /// Share of the lanes that do work.
  static constexpr double full(int n) {
    const int l = best_lanes<Scalar>(n);
    return static_cast<double>(n) / ((n + l - 1) / l * l);
  }
  using Filters = DirectFilters<Scalar, P>;
  using Width = DirectWidth<Scalar, P>;

 public:
  static constexpr bool over_width =
      P.conv().channels <= 8 && (P.conv().filters <= 4 || full(P.line()) > 1.15 * full(P.conv().filters));
  static constexpr bool by_channel = over_width && P.g.pooled() && P.whole_windows();
  using Backward = DirectBackward<Scalar, P, by_channel>;

  static constexpr std::string_view name = detail::direct_name(over_width, P.g.relu, P.g.pooled());

  static void pack_weights(const Conv2dCall<Scalar>& c) {
    Scalar* bias = c.packed_weights + P.bias_at();
    for (long f = 0; f < P.padded_filters(); ++f) bias[f] = c.bias && f < P.conv().filters ? c.bias[f] : Scalar(0);
    if constexpr (over_width) Width::pack(c.weight, c.packed_weights + P.packed_at());
    Backward::flip(c.weight, c.packed_weights + P.flipped_at());
  }
  /// winners: (batch, P.winner_bytes()), written where there is pooling. done(n) is called after each image n, whose output is in
  /// the cache then.
  template <class Done = NothingDone> static void forward(const Conv2dCall<Scalar>& c, ArgMax* winners, Done done = {}) {
    const Scalar* bias = c.packed_weights + P.bias_at();
    if constexpr (over_width) Width::clear(c.workspace);
    for (long n = 0; n < c.batch; ++n) {
      const Scalar* x = c.x + n * P.conv().in_count();
      Scalar* y = c.y + n * P.g.out_count();
      ArgMax* places = winners + n * P.winner_bytes();
      if constexpr (over_width) Width::image(x, c.packed_weights + P.packed_at(), bias, y, places, c.workspace);
      else Filters::image(x, c.weight, bias, y, places, c.workspace);
      done(n);
    }
  }
  /// With weights (weight_rows, weight_pitch) and a bias in place of the call's own; of vectors over the filters, nothing pooled.
  static void forward_with(const Conv2dCall<Scalar>& c, const Scalar* weight, const Scalar* bias) requires(!over_width) {
    for (long n = 0; n < c.batch; ++n)
      Filters::image(c.x + n * P.conv().in_count(), weight, bias, c.y + n * P.g.out_count(), nullptr, c.workspace);
  }
  /// make(n, to): writes the gradient of image n's convolution; without it that is dy, behind ReLU and pooling.
  template <class Make = NothingMade> static void backward(const Conv2dCall<Scalar>& c, const ArgMax* winners, Make make = {}) {
    Backward::run(c, c.packed_weights + P.flipped_at(), winners, make);
  }
  /// The gradient of one sample's convolution in full, of y and dy behind ReLU and pooling: (out_height, out_width, filters).
  static void unpool(const Scalar* y, const Scalar* dy, const ArgMax* winners, Scalar* to) {
    constexpr int filters = P.conv().filters, columns = P.g.out_width(), side = P.g.pool_kernel;
    std::fill_n(to, P.conv().out_count(), Scalar(0));
    for (int pixel = 0; pixel < P.g.pixels(); ++pixel)
      for (int f = 0; f < filters; ++f) {
        const long i = 1L * pixel * filters + f;
        if (P.g.relu && !(y[i] > 0)) continue;
        const int place = P.g.pooled() ? winners[by_channel ? f * P.winner_plane() + pixel : i] : 0;
        const int row = pixel / columns * P.g.pool_stride - P.g.pool_padding + place / side;
        const int column = pixel % columns * P.g.pool_stride - P.g.pool_padding + place % side;
        to[(1L * row * P.conv().out_width() + column) * filters + f] += dy[i];
      }
  }
};
#else
template <class Scalar, DirectPlan P> struct DirectConv2d;  // never named: conv2d_kernel chooses another
template <class Scalar, DirectPlan P> struct DenseWeights;  // nor this
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
