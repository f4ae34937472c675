// SPDX-License-Identifier: Apache-2.0
// A convolution on the processor, run by the kernel that conv2d_kernel.hpp chooses; and the memory that it needs, which a layer
// declares before it knows the scalar type and the registers.
#pragma once
#include <algorithm>
#include <string_view>

#include "conv2d_kernel.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// What runs: where no direct kernel pools so, the convolution alone, and the pooling behind it.
constexpr ConvReluPoolGeometry executed(const ConvReluPoolGeometry& g) {
  return takes_direct(g) ? g : ConvReluPoolGeometry{g.conv};
}
/// Whatever the registers and the scalar type are.
constexpr bool only_direct(const ConvReluPoolGeometry& g) {
  return conv2d_kernel<float>(g) == Conv2dKernel::direct && !is_gathered(g.conv);
}
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

/// Convolution on the processor. `kernel` is known to the compiler, so the others are not instantiated.
template <class Scalar, Conv2dGeometry G> struct Conv2d {
  static constexpr Conv2dKernel kernel = conv2d_kernel<Scalar>({G});
  static constexpr bool direct = kernel == Conv2dKernel::direct;
  static constexpr auto name_of_kernel() {
    if constexpr (direct) return DirectConv2d<Scalar, DirectPlan{{G}}>::name;
    else return names_of(kernel).alone;
  }
  static constexpr std::string_view name = name_of_kernel();
  /// It can add to dx.
  static constexpr bool adds_dx = direct;

  static void pack_weights(const Conv2dCall<Scalar>& c) {
    if constexpr (direct) DirectConv2d<Scalar, DirectPlan{{G}}>::pack_weights(c);
    else if constexpr (kernel == Conv2dKernel::gathered) GatheredConv2d<Scalar>(G).pack_weights(c);
    else if constexpr (kernel == Conv2dKernel::rows) PointwiseConv2d<Scalar, G>::pack_weights(c);
    else if constexpr (onednn) onednn_conv2d<G>().pack_weights(c);
  }
  static void prepare(long batch) {
    if constexpr (onednn) onednn_conv2d<G>().prepare(batch);
  }
  static void forward(const Conv2dCall<Scalar>& c) {
    if constexpr (direct) DirectConv2d<Scalar, DirectPlan{{G}}>::forward(c, nullptr);
    else if constexpr (kernel == Conv2dKernel::gathered) GatheredConv2d<Scalar>(G).forward(c);
    else if constexpr (kernel == Conv2dKernel::rows) PointwiseConv2d<Scalar, G>::forward(c);
    else if constexpr (onednn) onednn_conv2d<G>().forward(c);
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
    else if constexpr (kernel == Conv2dKernel::gathered) GatheredConv2d<Scalar>(G).backward(c);
    else if constexpr (kernel == Conv2dKernel::rows) PointwiseConv2d<Scalar, G>::backward(c);
    else if constexpr (kernel == Conv2dKernel::onednn_direct_weights) backward_by_both(c);
    else if constexpr (onednn) onednn_conv2d<G>().backward(c);
    else ReferenceConv2d<Scalar>::backward(G, c);
  }

 private:
  static constexpr bool onednn = kernel == Conv2dKernel::onednn || kernel == Conv2dKernel::onednn_direct_weights;

  static void backward_by_both(const Conv2dCall<Scalar>& c) {
    Conv2dCall<Scalar> data = c;
    data.dweight = data.dbias = nullptr;
    onednn_conv2d<G>().backward(data);
    if (c.dweight) DenseWeights<Scalar, DirectPlan{{G}}>::add_batch(c);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
