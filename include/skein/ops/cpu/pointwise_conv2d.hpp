// SPDX-License-Identifier: Apache-2.0
// Convolutions with a window of one pixel: products of the pixels' channels with one small matrix. With channels last the pixels
// are rows of it as they lie, those that a stride leaves out lie between them. Blocks of rows that stay in the cache are read
// once for both gradients.
#pragma once
#include <algorithm>
#include <type_traits>

#include "../reference/conv2d.hpp"
#include "direct_conv2d.hpp"
#include "row_products.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Is it a product with a matrix that stays in the second-level cache, of rows of whole vectors?
constexpr bool is_pointwise(const Conv2dGeometry& g) {
  return SKEIN_WITH_XSIMD && g.kernel == 1 && g.padding == 0 && g.groups == 1 && g.dimensions < 3 && g.channels % 16 == 0 &&
         g.filters % 16 == 0 && 1L * g.channels * g.filters <= 128 * 1024;
}
/// Scalars of the transposed copy of the weights that it reads backward.
constexpr long pointwise_packed_weights(const Conv2dGeometry& g) {
  return is_pointwise(g) ? row_products_packed(g.channels, g.filters) : 0;
}

/// The convolution of a geometry that is_pointwise(): the calls of Conv2d, with the copy of the weights that pack_weights() makes
/// for backward.
template <class Scalar, Conv2dGeometry G> struct PointwiseConv2d {
  /// Forward by blocks of some pixels by all filters, where that is faster than a library's call.
  static constexpr bool direct_forward = SKEIN_WITH_XSIMD && takes_direct({G}) && (G.filters <= 64 || G.stride > 1);
  using Rows = RowProducts<Scalar, G.channels, G.filters>;

  static void pack_weights(const Scalar* weight, Scalar* transposed) { Rows::pack_weights(0, G.filters, weight, transposed); }
  static void forward(const Conv2dCall<Scalar>& c) {
#if SKEIN_WITH_XSIMD
    if constexpr (direct_forward)
      return DirectConv2d<Scalar, DirectPlan{{G}}>::forward_with(c, c.weight, c.bias ? c.bias : zeros);
#endif
    each_block(c.batch, [&](long count, long in, long out) {
      Rows::forward(count, c.x + in, pixel, c.weight, c.bias ? c.bias : zeros, c.y + out, G.filters);
    });
  }
  static void backward(const Conv2dCall<Scalar>& c, const Scalar* transposed) {
    if (c.dx && G.stride > 1) std::fill_n(c.dx, c.batch * G.in_count(), Scalar(0));
    each_block(c.batch, [&](long count, long in, long out) {
      const Scalar* dy = c.dy + out;
      if (c.dx) Rows::input_gradient(count, dy, G.filters, c.weight, transposed, false, c.dx + in, pixel);
      if (!c.dweight) return;
      Rows::add_weight_gradient(count, c.x + in, pixel, dy, G.filters, c.dweight);
      for (long r = 0; c.dbias && r < count; ++r)
        for (long f = 0; f < G.filters; ++f) c.dbias[f] += dy[r * G.filters + f];
    });
  }

 private:
  static constexpr long pixel = 1L * G.stride * G.channels;  // from one that is read to the next
  static constexpr long rows = std::max(32L, 24L * 1024 / (G.channels + G.filters));
  alignas(64) static constexpr Scalar zeros[static_cast<std::size_t>(row_pitch(G.filters))]{};

  /// visit(pixels, where they begin in the input, and in the output): neighbours, or what is read of a line.
  template <class Visit> static void each_block(long batch, Visit visit) {
    if constexpr (G.stride == 1) {
      const long all = batch * G.in_pixels();
      for (long r = 0; r < all; r += rows) visit(std::min(rows, all - r), r * G.channels, r * G.filters);
    } else {
      for (long n = 0; n < batch; ++n)
        for (long y = 0; y < G.out_height(); ++y)
          visit(G.out_width(), n * G.in_count() + y * G.stride_height() * G.width * G.channels,
                n * G.out_count() + y * G.out_width() * G.filters);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
