// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN, in float: NHWC images, weights in the layout that oneDNN likes, made of the plain ones after every
// change (with plain weights it falls back to gemm, five times slower). Primitives are made once per thread, geometry and batch;
// those of the latest sixteen batches are kept.
//
//     g the geometry; x, w, b, y descriptions of images, weights, bias, outputs; n samples
#pragma once
#include <algorithm>
#include <type_traits>

#include "../reference/conv2d.hpp"
#include "direct_plan.hpp"
#include "onednn.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Filters in the layouts of oneDNN: padded to blocks of 16, or of up to 64 where they are more than two vectors of them (forward
/// with AVX-512 takes blocks of 48 for most of the powers of two).
constexpr long onednn_filters(long n) {
  const auto blocks = [n](long block) { return (n + block - 1) / block * block; };
  return n > 32 ? std::max(blocks(48), blocks(64)) : blocks(16);
}
/// Bound of the scalars of the weights in any layout that is accepted of oneDNN: channels are padded to vectors, filters to
/// blocks, in groups only where they are many.
constexpr long onednn_packed(const Conv2dGeometry& g) {
  const long window = g.window_count(), in = g.group_channels(), out = g.group_filters();
  const long each = whole_line(in) * onednn_filters(out) * window * g.groups, across = whole_line(g.groups) * in * out * window;
  return whole_line(g.groups == 1 || (in >= 8 && out >= 8) ? each : across);
}
/// Scalars: packed for forward and for backward data.
constexpr long onednn_packed_weights(const Conv2dGeometry& g) { return 2 * onednn_packed(g); }
/// Scalars: the weights' gradient packed and plain, the bias's.
constexpr long onednn_workspace(const Conv2dGeometry& g) {
  return onednn_packed(g) + whole_line(g.weight_rows() * g.weight_pitch()) + whole_line(g.weight_pitch());
}

#if SKEIN_WITH_ONEDNN
template <class Scalar> inline constexpr bool onednn_takes = std::is_same_v<Scalar, float>;

/// One geometry on one thread.
class OneDnnConv2d {
 public:
  explicit OneDnnConv2d(const Conv2dGeometry& g)
      : g_(g), plain_(weights(true)), forward_(plain_), data_(plain_), gradient_(plain_),
        zeros_(static_cast<std::size_t>(g.weight_pitch())) {
    const NoOmpTeam alone;
    choose_layouts();
    if (!(forward_ == plain_)) to_forward_ = onednn::make_reorder(plain_, forward_);
    if (!(data_ == plain_) && !(data_ == forward_)) to_data_ = onednn::make_reorder(plain_, data_);
    if (!(gradient_ == plain_)) from_gradient_ = onednn::make_reorder(gradient_, plain_);
  }

  /// All weights are in the layouts that oneDNN likes. A layout that is refused for its size is as slow as plain loops.
  bool accepted() const { return accepted_; }
  void pack_weights(const Conv2dCall<float>& c) {
    if (to_forward_) to_forward_->run({c.weight, c.packed_weights});
    if (to_data_) to_data_->run({c.weight, c.packed_weights + onednn_packed(g_)});
  }
  void prepare(long batch) {
    if (batch > 0) at(batch);
  }
  void forward(const Conv2dCall<float>& c) {
    if (c.batch == 0) return;
    at(c.batch).forward->run({c.x, to_forward_ ? c.packed_weights : c.weight, c.bias ? c.bias : zeros_.data(), c.y});
  }
  void backward(const Conv2dCall<float>& c) {
    if (c.batch == 0) return;
    Primitives& p = at(c.batch);
    if (c.dx) {
      const float* packed = to_data_ ? c.packed_weights + onednn_packed(g_) : !(data_ == plain_) ? c.packed_weights : c.weight;
      p.data->run({c.dy, packed, c.dx});
    }
    if (!c.dweight) return;
    const long count = g_.weight_rows() * g_.weight_pitch();
    float* plain = c.workspace + onednn_packed(g_);
    float* bias = plain + whole_line(count);
    float* to = from_gradient_ ? c.workspace : plain;
    p.weights->run({c.x, c.dy, to, bias});
    if (from_gradient_) from_gradient_->run({to, plain});
    for (long r = 0; r < g_.weight_rows(); ++r)
      for (long f = r * g_.weight_pitch(); f < r * g_.weight_pitch() + g_.filters; ++f) c.dweight[f] += plain[f];
    for (long f = 0; c.dbias && f < g_.filters; ++f) c.dbias[f] += bias[f];
  }

 private:
  using Description = onednn::Description;
  using Plan = onednn::Plan;
  struct Primitives {
    long batch = 0;
    std::unique_ptr<onednn::Primitive> forward, data, weights;
  };

  /// n dense images of (d, h, w, c); d only where the window moves along it.
  Description image(long n, long d, long h, long w, long c) const {
    if (g_.dimensions < 3) return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
    return {{n, c, d, h, w}, {d * h * w * c, 1, h * w * c, w * c, c}};
  }
  Description input(long n) const { return image(n, g_.depth, g_.height, g_.width, g_.channels); }
  Description output(long n) const { return image(n, g_.out_depth(), g_.out_height(), g_.out_width(), g_.filters); }
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

  Plan plan_forward(long n, const Description& w) const {
    const Numbers d(g_);
    const Description x = input(n), y = output(n), b = bias();
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

  /// By a batch of 16, whatever the batches will be: every thread must come to the same layouts.
  void choose_layouts() {
    const Description any = weights(false);
    const Plan f = plan_forward(16, any);
    if (!f) return;
    accept(forward_, f, dnnl_query_weights_md);
    if (const Plan d = plan_data(16, any, f)) accept(data_, d, dnnl_query_weights_md);
    if (const Plan w = plan_weights(16, any, f)) accept(gradient_, w, dnnl_query_diff_weights_md);
  }
  void accept(Description& layout, const Plan& plan, dnnl_query_t what) {
    const Description liked(plan.query(what));
    if (liked.bytes() <= static_cast<std::size_t>(onednn_packed(g_)) * sizeof(float)) layout = liked;
    else accepted_ = false;
  }

  Primitives& at(long batch) {
    for (auto& p : made_)
      if (p.batch == batch) return p;
    const NoOmpTeam alone;
    const Description x = input(batch), y = output(batch), b = bias();
    const Plan f = checked(plan_forward(batch, forward_)), d = checked(plan_data(batch, data_, f)),
               w = checked(plan_weights(batch, gradient_, f));
    Primitives p;
    p.batch = batch;
    using Arguments = std::initializer_list<onednn::Argument>;
    p.forward = std::make_unique<onednn::Primitive>(
        f, Arguments{
               {DNNL_ARG_SRC, x.get()}, {DNNL_ARG_WEIGHTS, forward_.get()}, {DNNL_ARG_BIAS, b.get()}, {DNNL_ARG_DST, y.get()}});
    p.data = std::make_unique<onednn::Primitive>(
        d, Arguments{{DNNL_ARG_DIFF_DST, y.get()}, {DNNL_ARG_WEIGHTS, data_.get()}, {DNNL_ARG_DIFF_SRC, x.get()}});
    p.weights = std::make_unique<onednn::Primitive>(w, Arguments{{DNNL_ARG_SRC, x.get()},
                                                                 {DNNL_ARG_DIFF_DST, y.get()},
                                                                 {DNNL_ARG_DIFF_WEIGHTS, gradient_.get()},
                                                                 {DNNL_ARG_DIFF_BIAS, b.get()}});
    if (made_.size() == most_batches) made_.erase(made_.begin());  // whoever predicts may come with any number of samples
    made_.push_back(std::move(p));
    return made_.back();
  }
  static Plan checked(Plan p) {
    if (!p) throw DeviceError("oneDNN: it has no convolution for this geometry");
    return p;
  }

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

  static constexpr std::size_t most_batches = 16;
  Conv2dGeometry g_;
  Description plain_, forward_, data_, gradient_;  // layouts of the weights
  bool accepted_ = true;
  std::unique_ptr<onednn::Primitive> to_forward_, to_data_, from_gradient_;
  Arena<float> zeros_;
  std::vector<Primitives> made_;
};

/// This thread's; made at the first call (prepare() makes it that).
template <Conv2dGeometry G> OneDnnConv2d& onednn_conv2d() {
  static thread_local OneDnnConv2d c(G);
  return c;
}
#else
template <class Scalar> inline constexpr bool onednn_takes = false;
template <Conv2dGeometry G> void onednn_conv2d();  // never called: onednn_takes says no
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
