// SPDX-License-Identifier: Apache-2.0
// A convolution as oneDNN describes it, in float: NHWC images, weights, and the plans of its three passes.
//
//     g the geometry; x, w, b, y descriptions of images, weights, bias, outputs; n samples
#pragma once
#include "../reference/conv2d.hpp"
#include "onednn.hpp"

#if SKEIN_WITH_ONEDNN
namespace skein::inline SKEIN_ABI::ops::cpu {

/// The descriptions and plans of one geometry.
class OneDnnConv2dPlans {
 public:
  using Description = onednn::Description;
  using Plan = onednn::Plan;

  explicit OneDnnConv2dPlans(const Conv2dGeometry& g) : g_(g) {}

  /// n dense images of (d, h, w, c); d only where the window moves along it.
  Description image(long n, long d, long h, long w, long c) const {
    if (g_.dimensions < 3) return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
    return {{n, c, d, h, w}, {d * h * w * c, 1, h * w * c, w * c, c}};
  }
  /// The same in whatever layout oneDNN likes.
  static Description liked(long n, long h, long w, long c) { return {{n, c, h, w}, {}}; }
  Description input(long n) const { return image(n, g_.depth, g_.height, g_.width, g_.channels); }
  Description output(long n) const { return image(n, g_.out_depth(), g_.out_height(), g_.out_width(), g_.filters); }
  Description liked_input(long n) const { return liked(n, g_.height, g_.width, g_.channels); }
  Description liked_output(long n) const { return liked(n, g_.out_height(), g_.out_width(), g_.filters); }
  Description bias() const { return {{g_.filters}, {1}}; }
  /// The weights as they lie in the arena, or (not plain) as oneDNN likes them.
  Description weights(bool plain) const {
    const long in = g_.group_channels(), out = g_.group_filters(), pitch = g_.weight_pitch(), cube = g_.dimensions == 3;
    std::vector<long> extents, strides;
    const auto dimension = [&](long extent, long stride) {
      extents.push_back(extent);
      if (plain) strides.push_back(stride);
    };
    if (g_.groups > 1) dimension(g_.groups, out);
    dimension(out, 1);
    dimension(in, pitch);
    if (cube) dimension(g_.kernel, 1L * g_.kernel * g_.kernel * in * pitch);
    dimension(g_.window_height(), g_.kernel * in * pitch);
    dimension(g_.kernel, in * pitch);
    return {extents, strides};
  }

  /// For x, w and y in given layouts, or in those that oneDNN likes.
  Plan plan_forward(const Description& x, const Description& w, const Description& y) const {
    const Numbers d(g_);
    const Description b = bias();
    onednn::Attributes a;
    dnnl_primitive_desc_t p = nullptr;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_convolution_forward_primitive_desc_create(&p, onednn::engine(), dnnl_forward_training, dnnl_convolution_direct, x.get(),
                                                   w.get(), b.get(), y.get(), d.stride, d.dilation, d.padding, d.padding_after,
                                                   a.get());
#else
    dnnl_convolution_desc_t c;
    if (dnnl_dilated_convolution_forward_desc_init(&c, dnnl_forward_training, dnnl_convolution_direct, x.get(), w.get(), b.get(),
                                                   y.get(), d.stride, d.dilation, d.padding, d.padding_after) == dnnl_success)
      dnnl_primitive_desc_create(&p, &c, a.get(), onednn::engine(), nullptr);
#endif
    return Plan(p);
  }
  Plan plan_data(long n, const Description& w, const Plan& hint) const {
    const Numbers d(g_);
    const Description x = input(n), y = output(n);
    onednn::Attributes a;
    dnnl_primitive_desc_t p = nullptr;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_convolution_backward_data_primitive_desc_create(&p, onednn::engine(), dnnl_convolution_direct, x.get(), w.get(), y.get(),
                                                         d.stride, d.dilation, d.padding, d.padding_after, hint.get(), a.get());
#else
    dnnl_convolution_desc_t c;
    if (dnnl_dilated_convolution_backward_data_desc_init(&c, dnnl_convolution_direct, x.get(), w.get(), y.get(), d.stride,
                                                         d.dilation, d.padding, d.padding_after) == dnnl_success)
      dnnl_primitive_desc_create(&p, &c, a.get(), onednn::engine(), hint.get());
#endif
    return Plan(p);
  }
  Plan plan_weights(long n, const Description& w, const Plan& hint) const {
    const Numbers d(g_);
    const Description x = input(n), y = output(n), b = bias();
    onednn::Attributes a;
    dnnl_primitive_desc_t p = nullptr;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_convolution_backward_weights_primitive_desc_create(&p, onednn::engine(), dnnl_convolution_direct, x.get(), w.get(),
                                                            b.get(), y.get(), d.stride, d.dilation, d.padding, d.padding_after,
                                                            hint.get(), a.get());
#else
    dnnl_convolution_desc_t c;
    if (dnnl_dilated_convolution_backward_weights_desc_init(&c, dnnl_convolution_direct, x.get(), w.get(), b.get(), y.get(),
                                                            d.stride, d.dilation, d.padding, d.padding_after) == dnnl_success)
      dnnl_primitive_desc_create(&p, &c, a.get(), onednn::engine(), hint.get());
#endif
    return Plan(p);
  }

 private:
  struct Numbers {  // as oneDNN counts: a dilation of 0 is none
    dnnl_dims_t stride{}, dilation{}, padding{}, padding_after{};
    explicit Numbers(const Conv2dGeometry& g) {
      const auto after = [&](int in, int out) { return (out - 1) * g.stride + g.reach() - in - g.padding; };
      int i = 0;
      const auto dimension = [&](int in, int out) {
        stride[i] = g.stride;
        dilation[i] = g.dilation - 1;
        padding[i] = g.padding;
        padding_after[i++] = after(in, out);
      };
      if (g.dimensions == 1) stride[i++] = 1;  // a height of 1, along which nothing moves
      if (g.dimensions == 3) dimension(g.depth, g.out_depth());
      if (g.dimensions > 1) dimension(g.height, g.out_height());
      dimension(g.width, g.out_width());
    }
  };
  Conv2dGeometry g_;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
