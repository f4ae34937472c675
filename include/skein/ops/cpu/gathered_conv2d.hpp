// SPDX-License-Identifier: Apache-2.0
// Convolutions of many channels with a window or a stride, by rows of the window: what one row of it sees for each output is
// copied side by side, and is a product with that row's matrix of weights. A copied value is multiplied as often as there are
// filters, so that the copies cost little. Sizes are numbers of run time: all geometries share the code.
//
//     c the call, g the geometry; x images (batch, height, width, channels), y their outputs (batch, pixels, filters), dx, dy the
//     gradients; ky a row of the window, k a value of it, i an output of a block, f a filter; V a vector of Scalar
#pragma once
#include <algorithm>

#include "../reference/conv2d.hpp"
#include "packed_panels.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Outputs of a block.
inline constexpr long gathered_rows = 512;

/// Can it go by gathered rows, and has it weights enough for that?
constexpr bool is_gathered(const Conv2dGeometry& g) {
  const bool vectors = g.channels % 16 == 0 && g.filters % 16 == 0 && g.channels >= 64 && g.filters >= 64;
  return SKEIN_WITH_XSIMD && vectors && (g.stride > 1 || g.kernel > 1) && g.groups == 1 && g.dimensions < 3 && g.dilation == 1 &&
         1L * g.kernel * g.channels * g.filters > 16 * 1024;
}
/// Scalars of the copies of the weights that it reads, forward and backward.
constexpr long gathered_packed_weights(const Conv2dGeometry& g) { return 2 * g.weight_rows() * g.filters; }
/// Scalars of a worker's workspace: the rows of a block, and what their gradient needs.
constexpr long gathered_workspace(const Conv2dGeometry& g) {
  return gathered_rows * g.kernel * g.channels + weight_gradient_room(1L * g.kernel * g.channels);
}

#if SKEIN_WITH_XSIMD
/// The convolution of a geometry that is_gathered(): the calls of Conv2d, with gathered_packed_weights() and gathered_workspace()
/// scalars.
template <class Scalar> class GatheredConv2d {
 public:
  constexpr explicit GatheredConv2d(const Conv2dGeometry& g)
      : g_(g), values_(1L * g.kernel * g.channels), forward_(values_, g.filters), back_(g.filters, values_) {}

  void pack_weights(const Conv2dCall<Scalar>& c) const {
    for (int ky = 0; ky < g_.window_height(); ++ky) {
      const Scalar* weight = c.weight + ky * values_ * g_.weight_pitch();
      forward_.pack(weight, g_.weight_pitch(), packed_forward(c, ky));
      back_.pack_transposed(weight, g_.weight_pitch(), packed_back(c, ky));
    }
  }
  void forward(const Conv2dCall<Scalar>& c) const {
    each_block(c.batch, [&](long first, long count) {
      for (int ky = 0; ky < g_.window_height(); ++ky) {
        gather(c.x, first, count, ky, c.workspace);
        forward_.multiply(count, c.workspace, packed_forward(c, ky), c.bias, c.y + first * g_.filters, false, nullptr, ky > 0);
      }
    });
  }
  void backward(const Conv2dCall<Scalar>& c) const {
    Scalar* const room = c.workspace + gathered_rows * values_;
    each_block(c.batch, [&](long first, long count) {
      const Scalar* dy = c.dy + first * g_.filters;
      if (c.dx) clear_images(first, count, c.dx);
      for (int ky = 0; ky < g_.window_height(); ++ky) {
        if (c.dweight) {
          gather(c.x, first, count, ky, c.workspace);
          Panels::add_weight_gradient(count, values_, g_.filters, c.workspace, dy, room,
                                      c.dweight + ky * values_ * g_.weight_pitch(), g_.weight_pitch());
        }
        if (!c.dx) continue;
        back_.multiply(count, dy, packed_back(c, ky), nullptr, c.workspace, false);
        add_back(c.workspace, first, count, ky, c.dx);
      }
      if (c.dbias) add_rows(dy, count, c.dbias);
    });
  }

 private:
  using Panels = PackedPanels<Scalar>;
  static constexpr int lanes = widest_lanes<Scalar>;
  using V = Vector<Scalar, lanes>;

  Scalar* packed_forward(const Conv2dCall<Scalar>& c, int ky) const { return c.packed_weights + ky * values_ * g_.filters; }
  Scalar* packed_back(const Conv2dCall<Scalar>& c, int ky) const {
    return c.packed_weights + (g_.window_height() + ky) * values_ * g_.filters;
  }

  /// visit(first output, outputs): about even blocks of all images' pixels.
  template <class Visit> void each_block(long batch, Visit visit) const {
    const long all = batch * g_.out_pixels(), blocks = (all + gathered_rows - 1) / gathered_rows,
               each = blocks > 0 ? (all + blocks - 1) / blocks : 0;
    for (long first = 0; first < all; first += each) visit(first, std::min(each, all - first));
  }
  /// visit(i, begin, end, at): of what row ky of the window sees for the i-th output of a block, the values [begin, end) lie in
  /// the image, side by side, value 0 at `at` of x or before it; the others are padding.
  template <class Visit> void each_output(long first, long count, int ky, Visit visit) const {
    const int width = g_.out_width(), height = g_.out_height();
    long image = first / g_.out_pixels();
    int y = static_cast<int>(first / width % height), x = static_cast<int>(first % width);
    for (long i = 0; i < count; ++i) {
      const int row = g_.in_row(y, ky), left = x * g_.stride - g_.padding;
      const int begin = std::clamp(-left, 0, g_.kernel), end = row < 0 ? begin : std::clamp(g_.width - left, begin, g_.kernel);
      visit(i, 1L * begin * g_.channels, 1L * end * g_.channels, ((image * g_.height + row) * g_.width + left) * g_.channels);
      if (++x == width) x = 0, ++y;
      if (y == height) y = 0, ++image;
    }
  }
  void gather(const Scalar* x, long first, long count, int ky, Scalar* rows) const {
    each_output(first, count, ky, [&](long i, long begin, long end, long at) {
      Scalar* to = rows + i * values_;
      std::fill_n(to, begin, Scalar(0));
      std::copy_n(x + (at + begin), end - begin, to + begin);
      std::fill_n(to + end, values_ - end, Scalar(0));
    });
  }
  /// What gather() has read gets its gradient.
  void add_back(const Scalar* rows, long first, long count, int ky, Scalar* dx) const {
    each_output(first, count, ky, [&](long i, long begin, long end, long at) {
      const Scalar* from = rows + i * values_;
      for (long k = begin; k < end; k += lanes) store_to(dx + (at + k), load_from<V>(dx + (at + k)) + load_from<V>(from + k));
    });
  }
  /// Sets the gradient of the images that begin in a block to 0.
  void clear_images(long first, long count, Scalar* dx) const {
    const long begin = (first + g_.out_pixels() - 1) / g_.out_pixels(), end = (first + count - 1) / g_.out_pixels() + 1;
    if (begin < end) std::fill_n(dx + begin * g_.in_count(), (end - begin) * g_.in_count(), Scalar(0));
  }
  void add_rows(const Scalar* rows, long count, Scalar* sums) const {
    for (long f = 0; f < g_.filters; f += lanes) {
      V sum = load_from<V>(sums + f);
      for (long r = 0; r < count; ++r) sum += load_from<V>(rows + r * g_.filters + f);
      store_to(sums + f, sum);
    }
  }

  Conv2dGeometry g_;
  long values_;  // that a row of the window sees
  Panels forward_, back_;
};
#if SKEIN_COMPILED
extern template class GatheredConv2d<float>;
#endif
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
