// SPDX-License-Identifier: Apache-2.0
// A convolution together with the ReLU and the max-pooling behind it, on the processor: one direct kernel where the channels
// are few; else the convolution alone, its output in memory of the layer, and one pass for ReLU and pooling.
#pragma once
#include <string_view>

#include "conv2d.hpp"
#include "pool2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Per sample, kept from forward to backward: scalars and bytes, enough for any scalar type.
constexpr long conv_relu_pool_saved(const ConvReluPoolGeometry& g) {
  return conv2d_kernel<float>(g) == Conv2dKernel::direct ? 0 : g.conv.out_count();
}
/// Bytes that a sample keeps from forward to backward besides: the winners of the windows.
constexpr long conv_relu_pool_saved_bytes(const ConvReluPoolGeometry& g) {
  return !g.pooled() ? 0 : takes_direct(g) ? DirectPlan{g}.winner_bytes() : g.out_count();
}

/// Convolution, ReLU and max-pooling as one operation; each of the latter two may be absent.
template <class Scalar, ConvReluPoolGeometry G> struct ConvReluPool {
  using Conv = Conv2d<Scalar, G.conv>;
  static constexpr bool direct = conv2d_kernel<Scalar>(G) == Conv2dKernel::direct;
  static constexpr auto name_of_kernel() {
    if constexpr (direct) return DirectConv2d<Scalar, DirectPlan{G}>::name;
    else return G.pooled() ? names_of(Conv::kernel).before_pooling : names_of(Conv::kernel).before_relu;
  }
  static constexpr std::string_view name = name_of_kernel();

  static void pack_weights(const Conv2dCall<Scalar>& c) {
    if constexpr (direct) DirectConv2d<Scalar, DirectPlan{G}>::pack_weights(c);
    else Conv::pack_weights(c);
  }
  static void prepare(long batch) {
    if constexpr (!direct) Conv::prepare(batch);
  }
  /// saved: (batch, conv_relu_pool_saved); winners: (batch, conv_relu_pool_saved_bytes), filled from the front.
  static void forward(const Conv2dCall<Scalar>& c, [[maybe_unused]] Scalar* saved_for_backward, ArgMax* winners) {
    if constexpr (direct) {
      DirectConv2d<Scalar, DirectPlan{G}>::forward(c, winners);
    } else if constexpr (G.pooled()) {
      Conv2dCall<Scalar> conv = c;
      conv.y = saved_for_backward;
      Conv::forward(conv);
      max_pool2d_forward(G.pool(), c.batch, saved_for_backward, c.y, winners);
      if (G.relu) rectify(c.y, c.batch * G.out_count());
    } else {
      Conv::forward(c);
      if (G.relu) rectify(c.y, c.batch * G.out_count());
    }
  }
  static void backward(const Conv2dCall<Scalar>& c, [[maybe_unused]] Scalar* saved_for_backward, const ArgMax* winners) {
    if constexpr (direct) {
      DirectConv2d<Scalar, DirectPlan{G}>::backward(c, winners);
    } else {
      Conv2dCall<Scalar> conv = c;
      conv.dy = saved_for_backward;
      if constexpr (G.pooled()) {
        max_pool2d_backward(G.pool(), c.batch, c.dy, winners, saved_for_backward, G.relu ? c.y : nullptr);
      } else {
        for (long i = 0; i < c.batch * G.out_count(); ++i) saved_for_backward[i] = c.y[i] > 0 ? c.dy[i] : Scalar(0);
      }
      Conv::backward(conv);
    }
  }

  static const Scalar* gradient(const Scalar* y, const Scalar* dy, const Scalar* saved_for_backward, const ArgMax* winners,
                                long n, Scalar* room) {
    if constexpr (direct) {
      DirectConv2d<Scalar, DirectPlan{G}>::unpool(y + n * G.out_count(), dy + n * G.out_count(),
                                                  winners + n * DirectPlan{G}.winner_bytes(), room);
      return room;
    } else {
      return saved_for_backward + n * G.conv.out_count();
    }
  }

 private:
  static void rectify(Scalar* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = y[i] < 0 ? Scalar(0) : y[i];
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
