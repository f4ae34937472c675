// SPDX-License-Identifier: Apache-2.0
// ConvReluPool: Conv2d, Relu, MaxPool2d (in either order of the last two), Conv2d, MaxPool2d and Conv2d, Relu as one layer. The
// output of the convolution is never written; backward loops over what is left behind the pooling.
#pragma once
#include "../../ops/conv_relu_pool.hpp"
#include "../conv2d.hpp"
#include "../fusion.hpp"
#include "../max_pool2d.hpp"
#include "../relu.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Stands for "no pooling".
struct NoPool {
  static constexpr int kernel_size = 1, stride = 1, padding = 0;
};

/// Parameters are those of Convolution. Rectifies: is there a Relu. Pool: a MaxPool2d<...> or NoPool.
template <class Convolution, bool Rectifies, class Pool> struct ConvReluPool {
  static constexpr ops::ConvReluPoolGeometry geometry(Extents in) {
    return {Convolution::geometry(in), Rectifies, Pool::kernel_size, Pool::stride, Pool::padding};
  }
  static constexpr LayerInfo describe(Extents in) {
    const ops::ConvReluPoolGeometry g = geometry(in);
    LayerInfo i = Convolution::describe(in);
    i.output = {3, {g.out_height(), g.out_width(), g.conv.filters}};
    i.saved_for_backward = ops::cpu::conv_relu_pool_saved(g);
    i.saved_bytes = ops::cpu::conv_relu_pool_saved_bytes(g);
    i.saves_output = Rectifies;
    i.flops += (Rectifies ? g.conv.out_count() : 0) + (g.pooled() ? g.out_count() * g.pool_kernel * g.pool_kernel : 0);
    if (i.fault == Fault::none && !g.pool().fits()) i.fault = Fault::window_too_large;
    return i;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) {
    return {ops::cpu::conv2d_packed_weights(geometry(in)), ops::cpu::conv2d_workspace(geometry(in))};
  }

  template <class In, class Frame> static void forward(Frame& f) {
    Op<In, Frame>::forward(Convolution::template call<In>(f), f.saved_for_backward,
                           reinterpret_cast<ops::ArgMax*>(f.saved_bytes));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Op<In, Frame>::backward(Convolution::template call<In>(f), f.saved_for_backward,
                            reinterpret_cast<const ops::ArgMax*>(f.saved_bytes));
  }
  /// The gradient of the convolution's output is written once more where the kernels go without it.
  template <class In, class Frame, class Sums> static void kronecker_factors(const Frame& f, const Sums& sums) {
    constexpr ops::Conv2dGeometry g = Convolution::geometry(In::extents);
    constexpr long pixels = g.out_count() / Convolution::filters;
    sums.images(g, f.x, f.batch);
    auto* const room = sums.room(Op<In, Frame>::kept_gradient ? 0 : g.out_count());
    for (long n = 0; n < f.batch; ++n)
      sums.gradients(
          Op<In, Frame>::gradient(f.y, f.dy, f.saved_for_backward, reinterpret_cast<const ops::ArgMax*>(f.saved_bytes), n, room),
          pixels, Convolution::filters, sums.mean_of_pixels(pixels));
  }
  template <class In, class Frame> static void pack_weights(Frame& f) {
    const Worker& w = f.context->worker;
    if (f.ordinal % w.count == w.index) Op<In, Frame>::pack_weights(Convolution::template call<In>(f));
  }
  template <class In, class Frame> static void prepare(Frame& f) { Op<In, Frame>::prepare(f.batch); }
  template <class In, class Frame> static constexpr std::string_view kernel() { return Op<In, Frame>::name; }

 private:
  template <class In, class Frame> using Op =
      ops::ConvReluPool<typename Frame::Device, typename Frame::Scalar, geometry(In::extents)>;
};

namespace detail {
/// Where windows leave values out, or are of one value, the pooling stays a layer of its own: the direct kernels pool what they
/// have just made.
template <class Pool> inline constexpr bool pools_all = Pool::stride <= Pool::kernel_size&& Pool::kernel_size > 1;
}  // namespace detail

template <int F, class... Os> struct Fusion<Cpu, Conv2d<F, Os...>, Relu> {
  using type = ConvReluPool<Conv2d<F, Os...>, true, NoPool>;
};
template <int F, class... Os, int K, class... Ps>
requires(detail::pools_all<MaxPool2d<K, Ps...>>) struct Fusion<Cpu, Conv2d<F, Os...>, MaxPool2d<K, Ps...>> {
  using type = ConvReluPool<Conv2d<F, Os...>, false, MaxPool2d<K, Ps...>>;
};
template <int F, class... Os, int K, class... Ps>
requires(detail::pools_all<MaxPool2d<K, Ps...>>) struct Fusion<Cpu, Conv2d<F, Os...>, Relu, MaxPool2d<K, Ps...>> {
  using type = ConvReluPool<Conv2d<F, Os...>, true, MaxPool2d<K, Ps...>>;
};
template <int F, class... Os, int K, class... Ps>
requires(detail::pools_all<MaxPool2d<K, Ps...>>) struct Fusion<Cpu, Conv2d<F, Os...>, MaxPool2d<K, Ps...>, Relu> {
  using type = ConvReluPool<Conv2d<F, Os...>, true, MaxPool2d<K, Ps...>>;
};

}  // namespace skein::inline SKEIN_ABI::nn
