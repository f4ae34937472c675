// SPDX-License-Identifier: Apache-2.0
// A convolution together with the batch normalisation behind it, and with the ReLU, or the sum and the ReLU, behind that. The
// sums of the statistics are taken while an image's output is in the cache; backward makes the gradient of that output in the
// cache too, where the convolution reads it. In evaluation the normalisation is folded into the weights where that is less work
// than a pass over the outputs; weights are folded in each call, so that no copy of them can be stale.
#pragma once
#include "batch_norm.hpp"
#include "conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scalars of folded weights and bias, enough for any scalar type.
constexpr long folded_weights(const Conv2dGeometry& g) {
  return takes_direct({g}) ? whole_line(g.weight_rows() * g.weight_pitch()) + whole_line(g.weight_pitch() + 16) : 0;
}
/// Scalars of a worker's workspace: the convolution's, the normalisation's, folded weights.
constexpr long conv_batch_norm_workspace(const Conv2dGeometry& g) {
  return whole_line(conv2d_workspace({g})) + batch_norm_workspace(g.filters) + folded_weights(g);
}

/// Both calls are of one layer: c.y is n.x, memory from forward to backward, (batch, out_count). n.workspace lies behind the
/// convolution's.
template <class Scalar, Conv2dGeometry G> struct ConvBatchNorm {
  using Conv = Conv2d<Scalar, G>;
  using Norm = BatchNorm<G.filters, G.filters, Scalar>;
  using Call = BatchNormCall<Scalar>;
  static constexpr std::string_view name = [] {
    if constexpr (Conv::direct)
      return DirectConv2d<Scalar, DirectPlan{{G}}>::over_width ? std::string_view("direct over the width, with BatchNorm")
                                                               : std::string_view("direct over the filters, with BatchNorm");
    else return names_of(Conv::kernel).before_norm;
  }();

  template <class Context> static void forward(const Conv2dCall<Scalar>& c, const Call& n, const Context& context) {
    if (!n.training) return evaluate(c, n);
    typename Norm::Sums sums(n);
    MomentsOfColumns<Scalar> moments{sums.first(), sums.second(), n.workspace, G.filters};
    moments.begin({c.y, 0, G.filters});
    Conv::forward_each(c, [&](long first, long count) {
      const Columns<Scalar> part = rows(c.y, first, count);
      if (first == 0) moments.begin(part);
      moments.add(part);
    });
    moments.finish();
    Norm::use_batch(n, sums, context);
    Norm::normalize(n);
  }

  /// Does what the backward of the two operations does, one after the other. Where the convolution does not go by images, the
  /// gradient of its output is in c.y afterwards.
  template <class Context> static void backward(const Conv2dCall<Scalar>& c, const Call& n, const Context& context) {
    typename Norm::Sums sums(n);
    Norm::load(n);
    Norm::products(n, sums);
    Norm::combine_by(n, sums, context);
    Conv::backward_of(c, c.y, [&](long first, long count, Scalar* to) { combine(n, first, count, to); });
  }
  static void remake(const Call& n) { Norm::remake(n); }
  /// After backward, the gradient of the convolution's output of image i: where backward has left it, or in `room`.
  static const Scalar* gradient(const Call& n, long i, Scalar* room) {
    if constexpr (!Conv::direct) return n.x + i * G.out_count();
    combine(n, i, 1, room);
    return room;
  }

 private:
  static Columns<Scalar> rows(const Scalar* x, long first, long count) {
    return {x + first * G.out_count(), count * G.out_pixels(), G.filters};
  }
  static void combine(const Call& n, long first, long count, Scalar* to) {
    Norm::combine(n, rows(n.x, first, count), (n.dsum ? n.dsum : n.dy) + first * G.out_count(), to);
  }

  /// Nothing is kept for backward.
  static void evaluate(const Conv2dCall<Scalar>& c, const Call& n) {
    Norm::use_running(n);
    Conv2dCall<Scalar> conv = c;
    conv.y = n.y;
    if constexpr (folds) {
      if (!n.addend && c.batch * G.out_pixels() > G.weight_rows()) return run_folded(conv, n);
    }
    Conv::forward_each(conv, [&](long first, long count) {
      Call part = n;
      part.x = n.y + first * G.out_count();
      part.y = n.y + first * G.out_count();
      if (n.addend) part.addend = n.addend + first * G.out_count();
      part.samples = count;
      Norm::normalize(part);
    });
  }

  static constexpr bool folds = [] {
    if constexpr (Conv::direct) return !DirectConv2d<Scalar, DirectPlan{{G}}>::over_width;
    else return false;
  }();
  /// conv(x, weight scale) + (bias - mean) scale + shift.
  static void run_folded(const Conv2dCall<Scalar>& c, const Call& n) requires folds {
    const ColumnAffine<Scalar> k = Norm::affine(n);
    Scalar* const weight = n.workspace + batch_norm_workspace(G.filters);
    Scalar* const bias = weight + whole_line(G.weight_rows() * G.weight_pitch());
    for (long r = 0; r < G.weight_rows(); ++r)
      for (long f = 0; f < G.weight_pitch(); ++f) {
        const long i = r * G.weight_pitch() + f;
        weight[i] = f < G.filters ? c.weight[i] * k.scale[f] : Scalar(0);
      }
    for (long f = 0; f < G.weight_pitch() + 16; ++f)
      bias[f] = f < G.filters ? ((c.bias ? c.bias[f] : Scalar(0)) - k.mean[f]) * k.scale[f] + k.shift[f] : Scalar(0);
    if (n.has_relu) DirectConv2d<Scalar, DirectPlan{{G, true}}>::forward_with(c, weight, bias);
    else DirectConv2d<Scalar, DirectPlan{{G}}>::forward_with(c, weight, bias);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
