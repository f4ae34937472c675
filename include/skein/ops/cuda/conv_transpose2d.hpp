// SPDX-License-Identifier: Apache-2.0
// Transposed convolution on the GPU, by the passes of the convolution that it turns round; bias and its gradient by the kernels
// that stand beside cuDNN there.
#pragma once
#include "../conv_transpose2d.hpp"
#include "conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

template <class Scalar, Conv2dGeometry G> struct ConvTranspose2d<Cuda, Scalar, G> {
  using Kernel = DeviceConv2d<Scalar, Scalar>;
  using Call = DeviceConv2dCall<Scalar, Scalar>;
  using Calls = TransposedCalls<Call>;
  static constexpr std::string_view name = Kernel::name(G);

  static void pack_weights(const Conv2dCall<Scalar>& c) { Kernel::pack_weights(G, Calls::with_weights(call(c))); }
  static void prepare(long batch) {
    if (batch <= 0) return;
    Kernel::prepare(G, batch, false, false, cudnn::MathMode::full);
    skein::cuda::workspace().reserve(column_sums_bytes(batch * G.in_pixels(), G.channels));
  }
  static void forward(const Conv2dCall<Scalar>& c) {
    if (c.batch <= 0) return;
    Kernel::backward(G, Calls::output(call(c)));
    if (!c.bias) return;
    const kernel::BiasRelu<Scalar, Scalar> pass{c.y, c.bias, false};
    row_strips(c.batch * G.in_pixels(), G.channels, pass.aligned(), pass);
  }
  /// Adds to dweight and dbias; writes dx where it is not null.
  static void backward(const Conv2dCall<Scalar>& c) {
    if (c.batch <= 0) return;
    const long pixels = c.batch * G.in_pixels();
    if (c.dbias)
      column_sums(pixels, G.channels, skein::cuda::workspace().get(column_sums_bytes(pixels, G.channels)),
                  kernel::RectifiedGradient<Scalar>{c.dy, nullptr, nullptr}, kernel::AddBiasGradient<Scalar>{c.dbias});
    if (c.dx) Kernel::forward(G, Calls::input_gradient(call(c)));
    Kernel::backward(G, Calls::weight_gradient(call(c)));
  }

 private:
  static Call call(const Conv2dCall<Scalar>& c) {
    return {c.batch, c.x, c.weight, c.bias, c.y, c.dy, c.dx, c.dweight, c.dbias, c.packed_weights};
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
