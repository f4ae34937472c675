// SPDX-License-Identifier: Apache-2.0
// Chooses the kernel of a convolution on the processor: direct ones for few channels, products of rows where the window is one
// pixel, products of gathered rows for many channels, oneDNN for the rest in float (with 32 registers the gradient of many
// weights is direct there), plain loops where there is neither.
#pragma once
#include <string_view>

#include "conv2d_onednn.hpp"
#include "direct_conv2d.hpp"
#include "gathered_conv2d.hpp"
#include "pointwise_conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Do direct kernels run this convolution (with what is fused to it) in Scalar? Where oneDNN does not take the type,
/// always; else where they are faster: with a pooling behind, or few channels.
template <class Scalar> constexpr bool runs_direct(const ConvReluPoolGeometry& g) {
#if SKEIN_WITH_XSIMD
  const bool rows = is_pointwise(g.conv) && g.conv.stride == 1;  // both gradients in one pass over the pixels
  const int most = g.conv.stride == 1 || (accumulators > 16 && g.conv.kernel > 1) ? 128 : 64;
  const bool many = accumulators <= 16 && is_gathered(g.conv) && g.conv.channels > 64 && g.conv.filters > 64;
  const bool few =
      g.conv.channels <= 8 || (g.conv.stride <= 2 && g.conv.channels <= most && g.conv.filters <= most && !rows && !many);
  const bool pooled = g.pooled() && g.conv.channels <= 64 && g.conv.filters <= 128;
  return takes_direct(g) && (pooled || few || !onednn_takes<Scalar>);
#else
  return takes_direct(g) && false;
#endif
}
/// Does it go by gathered rows, where it does not run directly? With 16 registers oneDNN takes up to 1.6 times as long, for
/// images that lie as ours; with 32 up to 1.3 times where the window is one pixel, and 0.8 to 0.97 of the time where it is not.
template <class Scalar> constexpr bool runs_gathered(const Conv2dGeometry& g) {
#if SKEIN_WITH_XSIMD
  const bool faster = accumulators <= 16 || (!is_pointwise(g) && (g.kernel == 1 || !onednn_takes<Scalar>));
  return std::is_floating_point_v<Scalar> && is_gathered(g) && faster;
#else
  return std::is_floating_point_v<Scalar> && is_gathered(g);
#endif
}
/// Is the gradient of its weights direct, where oneDNN runs the rest? oneDNN's lies in a layout of its own, from which it is
/// copied, and takes 1.05 to 1.5 times as long where the weights are many (AVX-512).
constexpr bool has_direct_weights(const Conv2dGeometry& g) { return is_gathered(g) && takes_direct({g}); }
/// What runs: where no direct kernel pools so, the convolution alone, and the pooling behind it.
constexpr ConvReluPoolGeometry executed(const ConvReluPoolGeometry& g) {
  return takes_direct(g) ? g : ConvReluPoolGeometry{g.conv};
}
/// Whatever the registers and the scalar type are.
constexpr bool only_direct(const ConvReluPoolGeometry& g) { return runs_direct<float>(g) && !is_gathered(g.conv); }
/// Scalars of packed weights and of workspace, for any scalar type.
constexpr long conv2d_packed_weights(const ConvReluPoolGeometry& pooled) {
  const ConvReluPoolGeometry g = executed(pooled);
  const long direct = takes_direct(g) ? DirectPlan{g}.packed_weights() : 0,
             others = std::max(is_pointwise(g.conv) ? pointwise_packed_weights(g.conv) : onednn_packed_weights(g.conv),
                               is_gathered(g.conv) ? gathered_packed_weights(g.conv) : 0);
  return only_direct(g) ? direct : std::max(direct, others);
}
/// Scalars of a worker's workspace for the geometry, enough for any scalar type.
constexpr long conv2d_workspace(const ConvReluPoolGeometry& pooled) {
  const ConvReluPoolGeometry g = executed(pooled);
  const long direct = takes_direct(g) ? DirectPlan{g}.workspace() : 0,
             others = std::max(is_pointwise(g.conv) ? pointwise_workspace(g.conv) : onednn_workspace(g.conv),
                               is_gathered(g.conv) ? gathered_workspace(g.conv) : 0);
  return only_direct(g) ? direct : std::max(direct, others);
}

/// The plain loops, in the form of the other kernels.
template <class Scalar> struct ReferenceConv2d {
  static void forward(const Conv2dGeometry& g, const Conv2dCall<Scalar>& c) { reference::conv2d_forward(g, c); }
  static void backward(const Conv2dGeometry& g, const Conv2dCall<Scalar>& c) {
    if (c.dx) reference::conv2d_backward_data(g, c);
    if (c.dweight) reference::conv2d_backward_weights(g, c);
  }
};

/// Convolution on the processor: direct where the channels are few, rows where the window is one pixel, gathered rows where the
/// channels are many, oneDNN otherwise, plain loops for types that it lacks.
template <class Scalar, Conv2dGeometry G> struct Conv2d {
  static constexpr bool direct = runs_direct<Scalar>({G});
  static constexpr bool gathered = !direct && runs_gathered<Scalar>(G);
  static constexpr bool pointwise = !direct && !gathered && is_pointwise(G) && std::is_floating_point_v<Scalar>;
  static constexpr bool onednn = !direct && !gathered && !pointwise && onednn_takes<Scalar>;
  static constexpr auto name_of() {
    if constexpr (direct) return DirectConv2d<Scalar, DirectPlan{{G}}>::name;
    else return std::string_view(gathered ? "gathered rows" : pointwise ? "rows" : onednn ? "oneDNN" : "reference");
  }
  static constexpr std::string_view name = name_of();
  /// It can add to dx.
  static constexpr bool adds_dx = direct;

  static void pack_weights(const Conv2dCall<Scalar>& c) {
    if constexpr (direct) DirectConv2d<Scalar, DirectPlan{{G}}>::pack_weights(c);
    if constexpr (onednn) onednn_conv2d<G>().pack_weights(c);
    if constexpr (gathered) GatheredConv2d<Scalar>(G).pack_weights(c);
    if constexpr (pointwise) PointwiseConv2d<Scalar, G>::pack_weights(c);
  }
  static void prepare(long batch) {
    if constexpr (onednn) onednn_conv2d<G>().prepare(batch);
  }
  static void forward(const Conv2dCall<Scalar>& c) {
    if constexpr (direct) DirectConv2d<Scalar, DirectPlan{{G}}>::forward(c, nullptr);
    else if constexpr (gathered) GatheredConv2d<Scalar>(G).forward(c);
    else if constexpr (onednn) onednn_conv2d<G>().forward(c);
    else if constexpr (pointwise) PointwiseConv2d<Scalar, G>::forward(c);
    else ReferenceConv2d<Scalar>::forward(G, c);
  }
  /// Runs forward(), and calls done(first, count) as soon as these images' outputs are written, while they are in the cache.
  template <class Done> static void forward_each(const Conv2dCall<Scalar>& c, Done done) {
    if constexpr (direct) {
      DirectConv2d<Scalar, DirectPlan{{G}}>::forward(c, nullptr, [&](long n) { done(n, 1L); });
    } else {
      forward(c);
      done(0L, c.batch);
    }
  }
  /// Backward where make(first, count, to) writes the gradients of these images' outputs. They are made in the cache where the
  /// kernel goes by images, else in dy_room, for all of them.
  template <class Make> static void backward_of(const Conv2dCall<Scalar>& c, [[maybe_unused]] Scalar* dy_room, Make make) {
    if constexpr (direct) {
      DirectConv2d<Scalar, DirectPlan{{G}}>::backward(c, nullptr, [&](long n, Scalar* to) { make(n, 1L, to); });
    } else {
      make(0L, c.batch, dy_room);
      Conv2dCall<Scalar> conv = c;
      conv.dy = dy_room;
      backward(conv);
    }
  }
  static void backward(const Conv2dCall<Scalar>& c) {
    if constexpr (direct) DirectConv2d<Scalar, DirectPlan{{G}}>::backward(c, nullptr);
    else if constexpr (gathered) GatheredConv2d<Scalar>(G).backward(c);
    else if constexpr (pointwise) PointwiseConv2d<Scalar, G>::backward(c);
    else if constexpr (onednn && has_direct_weights(G)) backward_by_both(c);
    else if constexpr (onednn) onednn_conv2d<G>().backward(c);
    else ReferenceConv2d<Scalar>::backward(G, c);
  }

 private:
  static void backward_by_both(const Conv2dCall<Scalar>& c) {
    Conv2dCall<Scalar> data = c;
    data.dweight = data.dbias = nullptr;
    onednn_conv2d<G>().backward(data);
    if (c.dweight) DenseWeights<Scalar, DirectPlan{{G}}>::add_batch(c);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
