// SPDX-License-Identifier: Apache-2.0
// Max-pooling on the processor for any geometry: vectors over the channels of a pixel, plain loops for what is left of them.
// (A pooling behind a convolution is usually a part of it: direct_conv2d.hpp.)
//
//     g the geometry, w a window; x images (N, height, width, channels), y their outputs, dx, dy the gradients; N samples: batch;
//     n a sample, c a channel; V a vector of Scalar
#pragma once
#include "../reference/pool2d.hpp"
#include "vector.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

#if SKEIN_WITH_XSIMD

namespace detail {
/// The part of a window that lies in the image.
struct Window {
  int top, left, y0, y1, x0, x1;  // image row and column of its corner; rows and columns of it inside
  Window(const Pool2dGeometry& g, int row, int column) : top(row * g.stride - g.padding), left(column * g.stride - g.padding) {
    y0 = top < 0 ? -top : 0;
    x0 = left < 0 ? -left : 0;
    y1 = top + g.kernel > g.height ? g.height - top : g.kernel;
    x1 = left + g.kernel > g.width ? g.width - left : g.kernel;
  }
};
template <class Scalar, class Visit> SKEIN_ALWAYS_INLINE void each_window(const Pool2dGeometry& g, long batch, Visit&& visit) {
  for (long n = 0; n < batch; ++n)
    for (int row = 0; row < g.out_height(); ++row)
      for (int column = 0; column < g.out_width(); ++column) {
        const Window w(g, row, column);
        visit(w, n * g.in_count() + (1L * w.top * g.width + w.left) * g.channels,
              n * g.out_count() + (1L * row * g.out_width() + column) * g.channels);
      }
}
/// One channel of one window.
template <class Scalar> void max_of(const Pool2dGeometry& g, const Window& w, const Scalar* x, Scalar& y, ArgMax& arg_max) {
  Scalar best = x[(1L * w.y0 * g.width + w.x0) * g.channels];
  int place = w.y0 * g.kernel + w.x0;
  for (int i = w.y0; i < w.y1; ++i)
    for (int j = w.x0; j < w.x1; ++j) {
      const Scalar value = x[(1L * i * g.width + j) * g.channels];
      const bool wins = value > best || value != value;
      best = wins ? value : best;
      place = wins ? i * g.kernel + j : place;
    }
  y = best;
  arg_max = static_cast<ArgMax>(place);
}
}  // namespace detail

/// Does what reference::max_pool2d_forward does, in vectors over the channels.
template <class Scalar>
void max_pool2d_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y, ArgMax* winners) {
  constexpr int lanes = widest_lanes<Scalar>;
  using V = Vector<Scalar, lanes>;
  detail::each_window<Scalar>(g, batch, [&](const detail::Window& w, long in, long out) {
    int c = 0;
    for (; c + lanes <= g.channels; c += lanes) {
      const Scalar* from = x + in + c;
      V best = load_from<V>(from + (1L * w.y0 * g.width + w.x0) * g.channels), place(static_cast<Scalar>(w.y0 * g.kernel + w.x0));
      for (int i = w.y0; i < w.y1; ++i)
        for (int j = w.x0; j < w.x1; ++j) {
          const V value = load_from<V>(from + (1L * i * g.width + j) * g.channels);
          const auto wins = (value > best) | ~(value == value);  // xsimd's != is false for NaN on AVX-512
          best = xsimd::select(wins, value, best);
          place = xsimd::select(wins, V(static_cast<Scalar>(i * g.kernel + j)), place);
        }
      store_to(y + out + c, best);
      store_bytes<lanes>(winners + out + c, place);
    }
    for (; c < g.channels; ++c) detail::max_of(g, w, x + in + c, y[out + c], winners[out + c]);
  });
}

/// rectified: see the reference.
template <class Scalar> void max_pool2d_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, const ArgMax* winners,
                                                 Scalar* dx, const Scalar* rectified = nullptr) {
  constexpr int lanes = widest_lanes<Scalar>;
  using V = Vector<Scalar, lanes>;
  for (long n = 0; n < batch; ++n) {
    Scalar* image = dx + n * g.in_count();
    for (long i = 0; i < g.in_count(); ++i) image[i] = 0;  // just before it is used: still in the cache
    const long first = n * g.out_count();
    detail::each_window<Scalar>(g, 1, [&](const detail::Window& w, long in, long at) {
      const long out = first + at;
      int c = 0;
      for (; c + lanes <= g.channels; c += lanes) {
        const V zero(Scalar(0)), place = load_bytes<V, lanes>(winners + out + c);
        V slope = load_from<V>(dy + out + c);
        if (rectified) slope = xsimd::select(load_from<V>(rectified + out + c) > zero, slope, zero);
        for (int i = w.y0; i < w.y1; ++i)
          for (int j = w.x0; j < w.x1; ++j) {
            Scalar* to = image + in + c + (1L * i * g.width + j) * g.channels;
            store_to(to, load_from<V>(to) + xsimd::select(place == V(static_cast<Scalar>(i * g.kernel + j)), slope, zero));
          }
      }
      for (; c < g.channels; ++c) {
        if (rectified && !(rectified[out + c] > 0)) continue;
        const int place = winners[out + c];
        image[in + c + (1L * (place / g.kernel) * g.width + place % g.kernel) * g.channels] += dy[out + c];
      }
    });
  }
}

#else
using reference::max_pool2d_backward;
using reference::max_pool2d_forward;
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
