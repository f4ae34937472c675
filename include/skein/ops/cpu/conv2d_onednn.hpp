// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN, in float: NHWC images, weights in the layout that oneDNN likes, made of the plain ones after every
// change (with plain weights it falls back to gemm, five times slower). Primitives are made once per thread, geometry and batch;
// those of the latest sixteen batches are kept.
//
//     g the geometry; x, w, b, y descriptions of images, weights, bias, outputs; n samples
#pragma once
#include <algorithm>
#include <type_traits>

#include "conv2d_onednn_plans.hpp"
#include "direct_plan.hpp"

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

/// Are images copied to the layout that oneDNN likes, and outputs back? For images like ours its forward kernels take 1.08 to
/// 1.17 times as long where a window has millions of weights and an image few pixels (AVX-512); both copies take 2 %.
constexpr bool onednn_copies_images(const Conv2dGeometry& g) {
  return g.dimensions == 2 && g.groups == 1 && g.stride == 1 && g.weight_rows() * g.filters >= 1L << 21 &&
         g.height * g.width <= 64;
}

#if SKEIN_WITH_ONEDNN
template <class Scalar> inline constexpr bool onednn_takes = std::is_same_v<Scalar, float>;

/// One geometry on one thread.
class OneDnnConv2d {
 public:
  explicit OneDnnConv2d(const Conv2dGeometry& g)
      : g_(g), plans_(g), plain_(plans_.weights(true)), forward_(plain_), data_(plain_), gradient_(plain_),
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
    if (batch == 0) return;
    at(batch);
    for (long first = 0; copies_ && first < batch; first += most_copied) copied(std::min(most_copied, batch - first));
  }
  void forward(const Conv2dCall<float>& c) {
    if (c.batch == 0) return;
    const float *weights = to_forward_ ? c.packed_weights : c.weight, *bias = c.bias ? c.bias : zeros_.data();
    if (!copies_) return at(c.batch).forward->run({c.x, weights, bias, c.y});
    for (long first = 0; first < c.batch; first += most_copied) {
      Copied& part = copied(std::min(most_copied, c.batch - first));
      part.in->run({c.x + first * g_.in_count(), x_.data()});
      part.forward->run({x_.data(), weights, bias, y_.data()});
      part.out->run({y_.data(), c.y + first * g_.out_count()});
    }
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
  using Arguments = std::initializer_list<onednn::Argument>;
  struct Primitives {
    long batch = 0;
    std::unique_ptr<onednn::Primitive> forward, data, weights;
  };
  struct Copied {
    long images = 0;
    std::unique_ptr<onednn::Primitive> in, forward, out;
  };

  /// By a batch of 16, whatever the batches will be: every thread must come to the same layouts.
  void choose_layouts() {
    const Description any = plans_.weights(false);
    const Plan f = plans_.plan_forward(plans_.input(16), any, plans_.output(16));
    if (!f) return;
    if (copies_)
      accept(forward_, checked(plans_.plan_forward(plans_.liked_input(16), any, plans_.liked_output(16))), dnnl_query_weights_md);
    else accept(forward_, f, dnnl_query_weights_md);
    if (const Plan d = plans_.plan_data(16, any, f)) accept(data_, d, dnnl_query_weights_md);
    if (const Plan w = plans_.plan_weights(16, any, f)) accept(gradient_, w, dnnl_query_diff_weights_md);
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
    const Description x = plans_.input(batch), y = plans_.output(batch), b = plans_.bias();
    const Plan f = checked(plans_.plan_forward(x, copies_ ? plans_.weights(false) : forward_, y)),
               d = checked(plans_.plan_data(batch, data_, f)), w = checked(plans_.plan_weights(batch, gradient_, f));
    Primitives p;
    p.batch = batch;
    if (!copies_) p.forward = make_forward(f, x, y);
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
  std::unique_ptr<onednn::Primitive> make_forward(const Plan& f, const Description& x, const Description& y) const {
    const Description b = plans_.bias();
    return std::make_unique<onednn::Primitive>(
        f, Arguments{
               {DNNL_ARG_SRC, x.get()}, {DNNL_ARG_WEIGHTS, forward_.get()}, {DNNL_ARG_BIAS, b.get()}, {DNNL_ARG_DST, y.get()}});
  }
  /// For so many images, at most most_copied.
  Copied& copied(long images) {
    for (auto& p : copied_)
      if (p.images == images) return p;
    const NoOmpTeam alone;
    const Plan f = checked(plans_.plan_forward(plans_.liked_input(images), forward_, plans_.liked_output(images)));
    const Description x(f.query(dnnl_query_src_md)), y(f.query(dnnl_query_dst_md));
    const auto reserve = [](Arena<float>& room, const Description& d) {
      if (room.size() * sizeof(float) < d.bytes()) room = Arena<float>((d.bytes() + sizeof(float) - 1) / sizeof(float));
    };
    reserve(x_, x), reserve(y_, y);
    copied_.push_back({images, onednn::make_reorder(plans_.input(images), x), make_forward(f, x, y),
                       onednn::make_reorder(y, plans_.output(images))});
    return copied_.back();
  }
  static Plan checked(Plan p) {
    if (!p) throw DeviceError("oneDNN: it has no convolution for this geometry");
    return p;
  }

  static constexpr std::size_t most_batches = 16;
  static constexpr long most_copied = 16;  // images; their copies stay in the caches, and memory does not grow with the batch
  Conv2dGeometry g_;
  OneDnnConv2dPlans plans_;
  const bool copies_ = onednn_copies_images(g_);
  Description plain_, forward_, data_, gradient_;  // layouts of the weights
  bool accepted_ = true;
  std::unique_ptr<onednn::Primitive> to_forward_, to_data_, from_gradient_;
  Arena<float> zeros_;
  std::vector<Primitives> made_;
  std::vector<Copied> copied_;
  Arena<float> x_, y_;  // what is copied
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
