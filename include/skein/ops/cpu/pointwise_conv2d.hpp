// SPDX-License-Identifier: Apache-2.0
// Convolutions with a window of one pixel: products of the pixels' channels with one small matrix. With channels last the pixels
// are rows of it as they lie, those that a stride leaves out lie between them. Blocks of rows that stay in the cache are read
// once for both gradients.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../reference/conv2d.hpp"
#include "direct_conv2d.hpp"
#include "row_products.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Is it a product with a matrix that stays in the second-level cache, of rows of whole vectors?
constexpr bool is_pointwise(const Conv2dGeometry& g) {
  return SKEIN_WITH_XSIMD && g.kernel == 1 && g.padding == 0 && g.groups == 1 && g.dimensions < 3 && g.channels % 16 == 0 &&
         g.filters % 16 == 0 && 1L * g.channels * g.filters <= 128 * 1024;
}
/// May it go forward by panels of the weights that lie one behind the other? Others go by blocks of all filters, and so
/// do those whose filters four vectors hold and whose channels are no more.
constexpr bool has_panels(const Conv2dGeometry& g) { return is_pointwise(g) && g.stride == 1 && g.filters >= 64; }
/// Scalars of the transposed copy of the weights that it reads backward, and of that which it reads forward.
constexpr long pointwise_packed_weights(const Conv2dGeometry& g) {
  return is_pointwise(g) ? row_products_packed(g.channels, g.filters) + (has_panels(g) ? g.channels * g.filters : 0) : 0;
}

/// The convolution of a geometry that is_pointwise(): the calls of Conv2d, with the copies of the weights that pack_weights()
/// makes, pointwise_packed_weights() scalars.
template <class Scalar, Conv2dGeometry G> struct PointwiseConv2d {
#if SKEIN_WITH_XSIMD
  static constexpr int four_vectors = 4 * widest_lanes<Scalar>;
#else
  static constexpr int four_vectors = 0;
#endif
  /// Forward by blocks of some pixels by all filters, or by panels, where that is faster than a library's call.
  static constexpr bool blocks =
      SKEIN_WITH_XSIMD && takes_direct({G}) && (!has_panels(G) || (G.filters <= four_vectors && G.channels <= G.filters));
  static constexpr bool own_forward = blocks || has_panels(G);
  using Rows = RowProducts<Scalar, G.channels, G.filters>;

  static void pack_weights(const Scalar* weight, Scalar* packed) {
    Rows::pack_weights(0, G.filters, weight, packed);
#if SKEIN_WITH_XSIMD
    if constexpr (has_panels(G) && !blocks) {
      Scalar* to = packed + transposed;
      for (int panel = 0; panel < Plan::panels; ++panel)
        for (int k = 0; k < G.channels; ++k, to += width(panel))
          std::copy_n(weight + k * row_pitch(G.filters) + Plan::first(panel), width(panel), to);
    }
#endif
  }
  static void forward(const Conv2dCall<Scalar>& c, [[maybe_unused]] const Scalar* packed) {
    const Scalar* const bias = c.bias ? c.bias : zeros;
#if SKEIN_WITH_XSIMD
    if constexpr (blocks) return DirectConv2d<Scalar, DirectPlan{{G}}>::forward_with(c, c.weight, bias);
    if constexpr (has_panels(G)) {
      if (!streams_to(c.y, c.batch * G.out_count())) return by_panels<Keep>(c, packed + transposed, bias);
      by_panels<KeepByStream>(c, packed + transposed, bias);
      return end_streams();
    }
#endif
    each_block(c.batch, [&](long count, long in, long out) {
      Rows::forward(count, c.x + in, pixel, c.weight, bias, c.y + out, G.filters);
    });
  }
  static void backward(const Conv2dCall<Scalar>& c, const Scalar* packed) {
    if (c.dx && G.stride > 1) std::fill_n(c.dx, c.batch * G.in_count(), Scalar(0));
    [[maybe_unused]] const bool streams = G.stride == 1 && G.channels > 64 && streams_to(c.dx, c.batch * G.in_count());
    each_block(c.batch, [&](long count, long in, long out) {
      const Scalar* dy = c.dy + out;
      if (c.dx) input_gradient(streams, count, dy, packed, c.weight, c.dweight ? c.x + in : nullptr, c.dx + in);
      if (!c.dweight) return;
      Rows::add_weight_gradient(count, c.x + in, pixel, dy, G.filters, c.dweight);
      for (long r = 0; c.dbias && r < count; ++r)
        for (long f = 0; f < G.filters; ++f) c.dbias[f] += dy[r * G.filters + f];
    });
#if SKEIN_WITH_XSIMD
    if (streams) end_streams();
#endif
  }

 private:
  static constexpr long pixel = 1L * G.stride * G.channels;  // from one that is read to the next
  static constexpr long rows = std::max(32L, (G.channels > G.filters ? 24L : 48L) * 1024 / (G.channels + G.filters));
  static constexpr long transposed = row_products_packed(G.channels, G.filters);
  /// So many bytes do not stay in the caches until they are read.
  static constexpr long larger_than_caches = 16L * 1024 * 1024;
  alignas(64) static constexpr Scalar zeros[static_cast<std::size_t>(row_pitch(G.filters))]{};

  static bool streams_to(const Scalar* to, long values) {
    return SKEIN_WITH_XSIMD && values * static_cast<long>(sizeof(Scalar)) > larger_than_caches &&
           reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
  }
  /// x: what the gradient of the weights reads next, or null.
  static void input_gradient([[maybe_unused]] bool streams, long count, const Scalar* dy, const Scalar* packed,
                             const Scalar* weight, [[maybe_unused]] const Scalar* x, Scalar* dx) {
#if SKEIN_WITH_XSIMD
    if constexpr (G.stride == 1) {
      Product<Scalar> p{.m = count, .k = G.filters, .a = dy, .lda = G.filters, .b = packed, .ldb = row_pitch(G.channels)};
      p.c = dx;
      p.ldc = G.channels;
      const Fetch fetch{dy, x, G.channels};
      if constexpr (G.channels > 64)
        if (streams) return small_product<G.channels, false, false, KeepByStream>(p, {}, fetch);
      if constexpr (Rows::own_back) return small_product<G.channels, false, false>(p, {}, fetch);
    }
#endif
    Rows::input_gradient(count, dy, G.filters, weight, packed, false, dx, pixel);
  }
#if SKEIN_WITH_XSIMD
  using Plan = ColumnPlan<Scalar, G.filters>;
  using Fetch = FetchAhead<Scalar>;
  static constexpr int width(int panel) { return Plan::width(panel) * Plan::lanes; }

  template <class Finish> static void by_panels(const Conv2dCall<Scalar>& c, const Scalar* panels, const Scalar* bias) {
    each_block(c.batch, [&](long count, long in, long out) {
      [&]<int... I>(std::integer_sequence<int, I...>) {
        const auto one = [&]<int Panel>(std::integral_constant<int, Panel>) {
          constexpr long first = Plan::first(Panel);
          Product<Scalar> p{
              .m = count, .k = G.channels, .a = c.x + in, .lda = G.channels, .c = c.y + out + first, .ldc = G.filters};
          p.b = panels + first * G.channels;
          p.ldb = width(Panel);
          p.start = bias + first;
          constexpr bool writes_rows = Panel == 0 && std::is_same_v<Finish, Keep>;  // into the cache
          const Scalar* later = writes_rows ? c.y + out + Fetch::ahead * G.filters : nullptr;
          const Fetch fetch{p.a, later, G.filters};
          panel<typename Plan::V, Plan::width(Panel), false, false, Finish>(p, fetch.in_panel(Panel));
        };
        (one(std::integral_constant<int, I>{}), ...);
      }
      (std::make_integer_sequence<int, Plan::panels>{});
    });
  }
#endif
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
