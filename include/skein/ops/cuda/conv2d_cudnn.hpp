// SPDX-License-Identifier: Apache-2.0
// A convolution of one geometry and batch by cuDNN: descriptors, and for each direction the algorithm that its heuristics put
// first among the deterministic ones whose workspace is within the limit. Products and gradients by the classic calls; bias and
// ReLU behind the product by the graph interface. Chosen once, kept by thread, device, geometry, batch, type and math; what was
// chosen, and what cuDNN does not do, is noted in cuda::choices().
//
//     g the geometry, h the handle, n how many algorithms there are; x images, y outputs, dx, dy their gradients
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "../../device/cuda/choices.hpp"
#include "cudnn_graph.hpp"

namespace skein::inline SKEIN_ABI::ops::cudnn {

/// Details of a failed call: "of 32 x 28 x 28 x 1 to 28 x 28 x 6, kernel 5, stride 1, padding 2, dilation 1, groups 1".
struct Said {
  Conv2dGeometry g;
  long batch;
  std::string operator()() const {
    const auto number = [](int n) { return std::to_string(n); };
    return "of " + shape({batch, g.height, g.width, g.channels}) + " to " + shape({g.out_height(), g.out_width(), g.filters}) +
           ", kernel " + (g.dimensions == 1 ? "1 x " : "") + number(g.kernel) + ", stride " + number(g.stride) + ", padding " +
           number(g.padding) + ", dilation " + number(g.dilation) + ", groups " + number(g.groups);
  }
};

/// The first that is at most `limit`, or else the least; `wants` is not empty.
inline std::size_t first_within(const std::vector<std::size_t>& wants, std::size_t limit) {
  for (std::size_t i = 0; i < wants.size(); ++i)
    if (wants[i] <= limit) return i;
  return static_cast<std::size_t>(std::min_element(wants.begin(), wants.end()) - wants.begin());
}

/// One geometry, batch, type (not double) and math, on one thread and device: its descriptors and the algorithm of each
/// direction.
class Convolution {
 public:
  Convolution(const Conv2dGeometry& g, long batch, cudnnDataType_t type, MathMode math)
      : g_(g), batch_(batch), type_(type), math_(math) {
    described_ = describe();
    if (!described_) {
      skein::cuda::choices().detour(text() + (g.dimensions == 3 ? ": along three dimensions" : ": more than 2^31 values") +
                                    ", plain loops run");
      return;
    }
    const cudnnMathType_t wish = type == CUDNN_DATA_FLOAT && math == MathMode::full ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
    for (const ConvolutionDescriptor* c : {&forward_conv_, &data_conv_, &filter_conv_}) {
      check(cudnnSetConvolution2dDescriptor(c->get(), g.padding_height(), g.padding, g.stride_height(), g.stride,
                                            g.dilation_height(), g.dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
            "cudnnSetConvolution2dDescriptor", said());
      check(cudnnSetConvolutionGroupCount(c->get(), g.groups), "cudnnSetConvolutionGroupCount", said());
      check(cudnnSetConvolutionMathType(c->get(), wish), "cudnnSetConvolutionMathType", said());
    }
    const cudnnHandle_t h = handle();
    forward_ = choose<cudnnConvolutionFwdAlgoPerf_t>(
        "forward", forward_conv_,
        [&](int most, int* n, auto* list) {
          return cudnnGetConvolutionForwardAlgorithm_v7(h, x_.get(), filter_.get(), forward_conv_.get(), y_.get(), most, n, list);
        },
        [&](auto algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionForwardWorkspaceSize(h, x_.get(), filter_.get(), forward_conv_.get(), y_.get(), algorithm,
                                                         bytes);
        });
    data_ = choose<cudnnConvolutionBwdDataAlgoPerf_t>(
        "gradient of the input", data_conv_,
        [&](int most, int* n, auto* list) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(h, filter_.get(), y_.get(), data_conv_.get(), x_.get(), most, n,
                                                             list);
        },
        [&](auto algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardDataWorkspaceSize(h, filter_.get(), y_.get(), data_conv_.get(), x_.get(), algorithm,
                                                              bytes);
        });
    filter_gradient_ = choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
        "gradient of the filters", filter_conv_,
        [&](int most, int* n, auto* list) {
          return cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, x_.get(), y_.get(), filter_conv_.get(), filter_.get(), most, n,
                                                               list);
        },
        [&](auto algorithm, std::size_t* bytes) {
          return cudnnGetConvolutionBackwardFilterWorkspaceSize(h, x_.get(), y_.get(), filter_conv_.get(), filter_.get(),
                                                                algorithm, bytes);
        });
  }

  bool is(const Conv2dGeometry& g, long batch, cudnnDataType_t type, MathMode math) const {
    return batch == batch_ && type == type_ && math == math_ && g == g_;
  }
  /// Does cuDNN do this direction? Where not, plain kernels must.
  bool has_forward() const { return forward_.found; }
  bool has_input_gradient() const { return data_.found; }
  bool has_filter_gradient() const { return filter_gradient_.found; }

  /// The plan of a product with bias and ReLU behind it, sought at the first question; null: there is none.
  const FusedConvolution* fused(bool bias, bool has_relu) {
    if (!described_) return nullptr;
    Fused& f = fused_[2 * bias + has_relu];
    if (!f.asked) {
      f = {true, FusedConvolution::find(g_, batch_, type_, math_, bias, has_relu)};
      const std::string what = text() + std::string(" with ") + (bias ? has_relu ? "bias and ReLU" : "bias" : "ReLU");
      if (f.plan)
        skein::cuda::choices().note(what + ": one kernel, " + workspace_text(f.plan->workspace()) +
                                    (has_relu && !f.plan->passes_nan() ? ", which may make 0 of a NaN" : ""));
      else skein::cuda::choices().detour(what + ": no engine takes it, a kernel behind the product does that");
    }
    return f.plan ? &*f.plan : nullptr;
  }
  std::size_t forward_workspace() const { return forward_.bytes; }
  std::size_t input_gradient_workspace() const { return data_.bytes; }
  std::size_t filter_gradient_workspace() const { return filter_gradient_.bytes; }

  void forward(const void* x, const void* filters, void* y, void* scratch) const {
    check(cudnnConvolutionForward(handle(), one.as(type_), x_.get(), x, filter_.get(), filters, forward_conv_.get(),
                                  forward_.algorithm, scratch, forward_.bytes, zero.as(type_), y_.get(), y),
          "cudnnConvolutionForward", said());
  }
  void input_gradient(const void* filters, const void* dy, void* dx, void* scratch) const {
    check(cudnnConvolutionBackwardData(handle(), one.as(type_), filter_.get(), filters, y_.get(), dy, data_conv_.get(),
                                       data_.algorithm, scratch, data_.bytes, zero.as(type_), x_.get(), dx),
          "cudnnConvolutionBackwardData", said());
  }
  /// dfilters is overwritten.
  void filter_gradient(const void* x, const void* dy, void* dfilters, void* scratch) const {
    check(cudnnConvolutionBackwardFilter(handle(), one.as(type_), x_.get(), x, y_.get(), dy, filter_conv_.get(),
                                         filter_gradient_.algorithm, scratch, filter_gradient_.bytes, zero.as(type_),
                                         filter_.get(), dfilters),
          "cudnnConvolutionBackwardFilter", said());
  }

 private:
  template <class Algorithm> struct Choice {
    Algorithm algorithm{};
    std::size_t bytes = 0;
    bool found = false;
  };
  struct Fused {
    bool asked = false;
    std::optional<FusedConvolution> plan;
  };

  Said said() const { return {g_, batch_}; }

  /// False where images or filters are larger than cuDNN's descriptors can say (2^31 values): plain loops count further. False
  /// too along three dimensions, for which descriptors are not written yet.
  bool describe() {
    if (batch_ > std::numeric_limits<int>::max() || g_.dimensions == 3) return false;
    const int n = static_cast<int>(batch_);
    return supported(cudnnSetTensor4dDescriptor(x_.get(), CUDNN_TENSOR_NHWC, type_, n, g_.channels, g_.height, g_.width),
                     "cudnnSetTensor4dDescriptor", said()) &&
           supported(
               cudnnSetTensor4dDescriptor(y_.get(), CUDNN_TENSOR_NHWC, type_, n, g_.filters, g_.out_height(), g_.out_width()),
               "cudnnSetTensor4dDescriptor", said()) &&
           supported(cudnnSetFilter4dDescriptor(filter_.get(), type_, CUDNN_TENSOR_NHWC, g_.filters, g_.group_channels(),
                                                g_.window_height(), g_.kernel),
                     "cudnnSetFilter4dDescriptor", said());
  }
  /// list(): the heuristics' order. The first that is deterministic, in the math asked for, and whose workspace is within the
  /// limit; where all want more, the one that wants least.
  template <class Performance, class ListOf, class BytesOf>
  Choice<decltype(Performance::algo)> choose(const char* direction, const ConvolutionDescriptor& convolution, ListOf list,
                                             BytesOf bytes) const {
    Performance found[16];
    int count = 0;
    const auto none = [&] {
      skein::cuda::choices().detour(text() + ", " + direction + ": no deterministic algorithm, plain loops run");
      return Choice<decltype(Performance::algo)>{};
    };
    const cudnnStatus_t status = list(16, &count, found);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return none();
    check(status, "cuDNN's choice of an algorithm", said());
    // A heuristic's answer holds for its own math type; full float stays without TF32 whatever it says.
    const bool strict = type_ == CUDNN_DATA_FLOAT && math_ == MathMode::full;
    const auto use_math_of = [&](const Performance& p) {
      check(cudnnSetConvolutionMathType(convolution.get(), strict ? CUDNN_FMA_MATH : p.mathType), "cudnnSetConvolutionMathType",
            said());
    };
    std::vector<std::size_t> wants;
    std::vector<const Performance*> candidates;
    for (int i = 0; i < count; ++i) {
      if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].determinism != CUDNN_DETERMINISTIC) continue;
      use_math_of(found[i]);
      std::size_t workspace = 0;
      if (bytes(found[i].algo, &workspace) != CUDNN_STATUS_SUCCESS) continue;
      wants.push_back(workspace);
      candidates.push_back(&found[i]);
    }
    if (candidates.empty()) return none();
    const std::size_t best = first_within(wants, workspace_limit());
    use_math_of(*candidates[best]);
    skein::cuda::choices().note(skein::text(
        "{}, {}: algorithm {}, {}{}", text(), direction, static_cast<int>(candidates[best]->algo), workspace_text(wants[best]),
        (wants[best] > workspace_limit() ? ", more than the limit: no other wants less" : "")));
    return {candidates[best]->algo, wants[best], true};
  }
  /// "cuDNN's convolution of 32 x 28 x 28 x 1 to ...".
  std::string text() const { return "cuDNN's convolution " + said()(); }
  static std::string workspace_text(std::size_t bytes) { return skein::text("{} KiB of workspace", (bytes + 1023) / 1024); }

  Conv2dGeometry g_;
  long batch_;
  cudnnDataType_t type_;
  MathMode math_;
  bool described_ = false;
  TensorDescriptor x_, y_;
  FilterDescriptor filter_;
  ConvolutionDescriptor forward_conv_, data_conv_, filter_conv_;
  Choice<cudnnConvolutionFwdAlgo_t> forward_;
  Choice<cudnnConvolutionBwdDataAlgo_t> data_;
  Choice<cudnnConvolutionBwdFilterAlgo_t> filter_gradient_;
  Fused fused_[4];
};

/// The calling thread's convolution on the current device; made (which takes milliseconds, and must not happen while a step is
/// captured) at the first call.
inline Convolution& convolution(const Conv2dGeometry& g, long batch, cudnnDataType_t type, MathMode math) {
  (void)handle();  // made before, gone after: plans know their handle
  thread_local std::array<std::vector<std::unique_ptr<Convolution>>, skein::cuda::detail::most_devices> all;
  auto& mine = all[skein::cuda::detail::index_of(skein::cuda::current_device())];
  for (const auto& c : mine)
    if (c->is(g, batch, type, math)) return *c;
  return *mine.emplace_back(std::make_unique<Convolution>(g, batch, type, math));
}

}  // namespace skein::inline SKEIN_ABI::ops::cudnn
