// SPDX-License-Identifier: Apache-2.0
// Convolutions with a window of one pixel: products of the pixels' channels with one matrix. With channels last the pixels are
// rows of it as they lie, those that a stride leaves out lie between them. Blocks of rows that stay in the cache are read once
// for both gradients, where the weights stay there too.
//
//     c the call, G, g the geometry; x images (batch, pixels, channels), y their outputs (batch, pixels, filters), dx, dy the
//     gradients
#pragma once
#include <algorithm>

#include "../reference/conv2d.hpp"
#include "column_sums.hpp"
#include "direct_conv2d.hpp"
#include "packed_panels.hpp"
#include "row_products.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Do its weights stay in the second-level cache beside blocks of rows?
constexpr bool has_few_weights(const Conv2dGeometry& g) { return 1L * g.channels * g.filters <= 128 * 1024; }
/// Does it go by panels of the weights that lie one behind the other?
constexpr bool has_panels(const Conv2dGeometry& g) { return g.stride == 1 && g.filters >= 64; }
/// Does the gradient of its input go by such panels?
constexpr bool has_panels_back(const Conv2dGeometry& g) { return g.stride == 1 && g.channels >= 64; }
/// Is it a product of rows of whole vectors with a matrix?
constexpr bool is_pointwise(const Conv2dGeometry& g) {
  return SKEIN_WITH_XSIMD && g.kernel == 1 && g.padding == 0 && g.groups == 1 && g.dimensions < 3 && g.channels % 16 == 0 &&
         g.filters % 16 == 0 && (has_few_weights(g) || (has_panels(g) && has_panels_back(g)));
}
/// Scalars of the copies of the weights that it reads backward, and forward.
constexpr long pointwise_packed_weights(const Conv2dGeometry& g) {
  const long all = 1L * g.channels * g.filters;
  return is_pointwise(g) ? (has_panels_back(g) ? all : row_products_packed(g.channels, g.filters)) + (has_panels(g) ? all : 0)
                         : 0;
}
/// Its weights may be too many for one pass over blocks of rows that makes both gradients: that depends on the caches.
constexpr bool may_take_two_passes(const Conv2dGeometry& g) {
  return has_panels(g) && has_panels_back(g) && 1L * g.channels * g.filters > 16 * 1024;
}
/// Scalars of a worker's workspace.
constexpr long pointwise_workspace(const Conv2dGeometry& g) {
  return is_pointwise(g) && may_take_two_passes(g) ? weight_gradient_room(g.channels) : 0;
}

/// The convolution of a geometry that is_pointwise(): the calls of Conv2d, with the copies of the weights that pack_weights()
/// makes, pointwise_packed_weights() scalars.
template <class Scalar, Conv2dGeometry G> struct PointwiseConv2d {
  using Rows = RowProducts<Scalar, G.channels, G.filters>;

  static void pack_weights(const Conv2dCall<Scalar>& c) {
#if SKEIN_WITH_XSIMD
    constexpr long pitch = row_pitch(G.filters);
    if constexpr (has_panels_back(G)) Panels(G.filters, G.channels).pack_transposed(c.weight, pitch, c.packed_weights);
    if constexpr (has_panels(G)) Panels(G.channels, G.filters).pack(c.weight, pitch, c.packed_weights + packed_back);
#endif
    if constexpr (!has_panels_back(G)) Rows::pack_weights(0, G.filters, c.weight, c.packed_weights);
  }
  static void forward(const Conv2dCall<Scalar>& c) {
#if SKEIN_WITH_XSIMD
    if constexpr (has_panels(G)) {
      constexpr Panels panels(G.channels, G.filters);
      const bool streams = panels.streams_to(c.y, c.batch * G.out_count());
      panels.multiply(c.batch * G.in_pixels(), c.x, c.packed_weights + packed_back, c.bias, c.y, streams);
      if (streams) end_streams();
      return;
    }
#endif
    const Scalar* const bias = c.bias ? c.bias : zeros;
#if SKEIN_WITH_XSIMD
    if constexpr (takes_direct({G})) return DirectConv2d<Scalar, DirectPlan{{G}}>::forward_with(c, c.weight, bias);
#endif
    each_block(c.batch, [&](long count, long in, long out) {
      Rows::forward(count, c.x + in, pixel, c.weight, bias, c.y + out, G.filters);
    });
  }
  static void backward(const Conv2dCall<Scalar>& c) {
    if (c.dx && G.stride > 1) std::fill_n(c.dx, c.batch * G.in_count(), Scalar(0));
    [[maybe_unused]] bool streams = false;
#if SKEIN_WITH_XSIMD
    if constexpr (has_panels_back(G)) streams = c.dx && back.streams_to(c.dx, c.batch * G.in_count());
#endif
    each_block(c.batch, [&](long count, long in, long out) {
      if (c.dx) input_gradient(c, count, in, out, streams);
      if (c.dweight) weight_gradient(c, count, in, out);
    });
#if SKEIN_WITH_XSIMD
    if (streams) end_streams();
#endif
  }

 private:
#if SKEIN_WITH_XSIMD
  static constexpr bool one_pass =
      has_few_weights(G) && (!may_take_two_passes(G) || 1L * G.channels * G.filters <= blocking.one_pass_weights);
  static constexpr long block_values = G.channels > G.filters ? blocking.fewer : blocking.more;
#else
  static constexpr bool one_pass = true;
  static constexpr long block_values = 24L * 1024;
#endif
  static constexpr long pixel = 1L * G.stride * G.channels;  // from one that is read to the next
  static constexpr long packed_back = pointwise_packed_weights(G) - (has_panels(G) ? 1L * G.channels * G.filters : 0);
  alignas(64) static constexpr Scalar zeros[static_cast<std::size_t>(row_pitch(G.filters))]{};
#if SKEIN_WITH_XSIMD
  using Panels = PackedPanels<Scalar>;
  static constexpr Panels back{G.filters, G.channels};
#endif

  /// Writes the gradient of `count` input pixels, which begin at c.dx + in; that of the outputs begins at c.dy + out.
  static void input_gradient(const Conv2dCall<Scalar>& c, long count, long in, long out, [[maybe_unused]] bool streams) {
#if SKEIN_WITH_XSIMD
    if constexpr (has_panels_back(G)) {
      const Scalar* read_next = c.dweight && one_pass ? c.x + in : nullptr;
      return back.multiply(count, c.dy + out, c.packed_weights, nullptr, c.dx + in, streams, read_next);
    }
#endif
    Rows::input_gradient(count, c.dy + out, G.filters, c.weight, c.packed_weights, false, c.dx + in, pixel);
  }
  static void weight_gradient(const Conv2dCall<Scalar>& c, long count, long in, long out) {
    const Scalar* dy = c.dy + out;
#if SKEIN_WITH_XSIMD
    if constexpr (one_pass) Rows::add_weight_gradient(count, c.x + in, pixel, dy, G.filters, c.dweight);
    else Panels::add_weight_gradient(count, G.channels, G.filters, c.x + in, dy, c.workspace, c.dweight, row_pitch(G.filters));
    if (c.dbias)
      column_sums<G.filters>(
          ColumnSums<Scalar>{.rows = count, .pitch = G.filters, .dy = dy, .sums = c.dbias, .accumulate = true});
#endif
  }
  /// visit(pixels, where they begin in the input, and in the output): neighbours, or what is read of a line.
  template <class Visit> static void each_block(long batch, Visit visit) {
    if constexpr (G.stride == 1) {
      const long all = batch * G.in_pixels(), few = block_values / (G.channels + G.filters);
      const long rows = one_pass ? std::max(32L, few) : all;
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
