// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph interface, as far as one fusion needs it: y = relu(convolution(x, filters) + bias), bias and ReLU each optional,
// in one kernel. A plan is built once (engines are asked for, filtered, tried) and run with three or four pointers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../reference/conv2d.hpp"
#include "cudnn.hpp"

namespace skein::inline SKEIN_ABI::ops::cudnn {

/// A descriptor of the graph interface.
class Backend {
 public:
  explicit Backend(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
  }
  Backend(Backend&& o) noexcept : raw_(std::exchange(o.raw_, nullptr)) {}
  Backend& operator=(Backend&& o) noexcept {
    std::swap(raw_, o.raw_);
    return *this;
  }
  ~Backend() {
    if (raw_) (void)cudnnBackendDestroyDescriptor(raw_);
  }
  cudnnBackendDescriptor_t get() const { return raw_; }

  template <class T>
  Backend& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values, std::int64_t count) {
    check(cudnnBackendSetAttribute(raw_, name, type, count, values), "cudnnBackendSetAttribute",
          [&] { return text("number {}", static_cast<int>(name)); });
    return *this;
  }
  template <class T> Backend& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, &value, 1);
  }
  /// Another descriptor, finalised, which must live as long as this one is used.
  Backend& part(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &other, 1);
  }
  /// False where cuDNN does not support what the descriptor says; any other fault throws.
  bool finalize() {
    const cudnnStatus_t status = cudnnBackendFinalize(raw_);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return false;
    check(status, "cudnnBackendFinalize");
    return true;
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// What an engine is to us, by what it notes about itself: refused, taken where nothing is better, or one that also says that a
/// NaN in front of a ReLU comes out as a NaN, as it does of our own kernels.
enum class Fit { no, loose, passes_nan };
inline Fit judge(std::span<const cudnnBackendNumericalNote_t> notes, cudnnDataType_t type, MathMode math) {
  Fit fit = Fit::loose;
  for (const cudnnBackendNumericalNote_t note : notes) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return Fit::no;
    if (type == CUDNN_DATA_FLOAT && note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) return Fit::no;
    if (type == CUDNN_DATA_FLOAT && math == MathMode::full && note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return Fit::no;
#if CUDNN_VERSION >= 91900
    if (note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP) fit = Fit::passes_nan;
#endif
  }
  return fit;
}
/// The order in which engines are tried: those that pass NaNs on first where there is a ReLU, each kind as the heuristic has it.
inline std::vector<std::size_t> order_of(const std::vector<Fit>& engines, bool has_relu) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < engines.size(); ++i)
    if (engines[i] != Fit::no) order.push_back(i);
  if (has_relu) std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return engines[i] == Fit::passes_nan; });
  return order;
}

/// One plan: geometry, batch, types and what is fused are fixed.
class FusedConvolution {
 public:
  /// Nothing where no engine of this cuDNN, on this GPU, takes it deterministically and in the precision asked for.
  static std::optional<FusedConvolution> find(const Conv2dGeometry& g, long batch, cudnnDataType_t type, MathMode math, bool bias,
                                              bool has_relu) {
    try {
      FusedConvolution found(g, batch, type, bias, has_relu);
      for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
        if (found.choose(mode, type, math, has_relu)) return found;
    } catch (const NotSupported&) {}
    return std::nullopt;
  }

  std::size_t workspace() const { return workspace_; }
  /// Does the engine say that a NaN in front of the ReLU comes out as one?
  bool passes_nan() const { return passes_nan_; }

  /// All pointers 16-byte aligned; scratch: workspace() bytes. `bias` is null where none was asked for.
  void run(const void* x, const void* filters, const void* bias, void* y, void* scratch) const {
    void* pointers[] = {const_cast<void*>(x), const_cast<void*>(filters), y, const_cast<void*>(bias)};
    const std::int64_t ids[] = {x_id, filter_id, y_id, bias_id}, count = has_bias_ ? 4 : 3;
    Backend pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers, count)
        .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids, count)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &scratch, 1);
    if (!pack.finalize()) throw DeviceError("cuDNN refuses the pointers of a fused convolution");
    check(cudnnBackendExecute(handle(), plan_, pack.get()), "cudnnBackendExecute");
  }

 private:
  static constexpr std::int64_t x_id = 1, filter_id = 2, bias_id = 3, y_id = 4, product_id = 5, sum_id = 6;
  static constexpr cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  struct NotSupported {};  // thrown where this cuDNN takes no such descriptor

  FusedConvolution(const Conv2dGeometry& g, long batch, cudnnDataType_t type, bool bias, bool has_relu) : has_bias_(bias) {
    const std::int64_t n = batch, k = g.filters, h = g.out_height(), w = g.out_width();
    const auto x = image(x_id, type, n, g.channels, g.height, g.width), y = image(y_id, type, n, k, h, w);
    const auto filter = image(filter_id, type, k, g.group_channels(), g.window_height(), g.kernel);

    const std::int64_t padding[] = {g.padding_height(), g.padding}, stride[] = {g.stride_height(), g.stride},
                       dilation[] = {g.dilation_height(), g.dilation}, dimensions = 2;
    Backend window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, dimensions)
        .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, padding, 2)
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, padding, 2)
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilation, 2)
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, stride, 2);
    auto result = bias || has_relu ? image(product_id, compute, n, k, h, w, true) : y;
    const float one = 1, zero = 0;
    Backend forward(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    forward.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, keep(std::move(window)))
        .part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
        .part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filter)
        .part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, result)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, one)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, zero);
    std::vector<cudnnBackendDescriptor_t> operations{keep(std::move(forward))};
    if (bias) {
      const auto sum = has_relu ? image(sum_id, compute, n, k, h, w, true) : y;
      operations.push_back(pointwise(CUDNN_POINTWISE_ADD, result, image(bias_id, type, 1, k, 1, 1), sum));
      result = sum;
    }
    if (has_relu) operations.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, result, nullptr, y));
    const cudnnHandle_t own = handle();
    Backend graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
             static_cast<std::int64_t>(operations.size()))
        .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, own);
    graph_ = keep(std::move(graph));
  }

  /// Descriptors refer to each other: all live as long as the plan.
  cudnnBackendDescriptor_t keep(Backend&& b) {
    if (!b.finalize()) throw NotSupported();
    return keep_final(std::move(b));
  }
  cudnnBackendDescriptor_t keep_final(Backend&& b) {
    parts_.push_back(std::move(b));
    return parts_.back().get();
  }
  /// Channels last: extents are said in cuDNN's order, strides tell where they lie.
  cudnnBackendDescriptor_t image(std::int64_t id, cudnnDataType_t type, std::int64_t n, std::int64_t c, std::int64_t h,
                                 std::int64_t w, bool virtually = false) {
    const std::int64_t extents[] = {n, c, h, w}, strides[] = {h * w * c, 1, w * c, c}, alignment = 16;
    Backend t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents, 4)
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides, 4)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, virtually);
    return keep(std::move(t));
  }
  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                     cudnnBackendDescriptor_t y) {
    Backend what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
    Backend operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(what)))
        .part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) operation.part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return keep(std::move(operation));
  }

  /// The first of the heuristic's engines, in order_of(), that is deterministic, keeps the precision, and makes a plan within the
  /// limit of workspace.
  bool choose(cudnnBackendHeurMode_t mode, cudnnDataType_t type, MathMode math, bool has_relu) {
    Backend heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_).set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (cudnnBackendFinalize(heuristic.get()) != CUDNN_STATUS_SUCCESS) return false;  // this mode has no answer
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                   nullptr),
          "cudnnBackendGetAttribute (how many engines)");
    std::vector<Backend> configurations;
    std::vector<cudnnBackendDescriptor_t> list;
    for (std::int64_t i = 0; i < count; ++i) {
      configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      list.push_back(configurations.back().get());
    }
    if (count == 0) return false;
    check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                                   list.data()),
          "cudnnBackendGetAttribute (engines)");
    std::vector<Fit> fits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) fits.push_back(fit_of(configurations[i], type, math));
    for (const std::size_t i : order_of(fits, has_relu)) {
      Backend& configuration = configurations[i];
      const cudnnHandle_t own = handle();
      Backend plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, own)
          .part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration.get());
      if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;  // engines may fail to compile: the next one
      std::int64_t bytes = 0, got = 0;
      check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &got, &bytes),
            "cudnnBackendGetAttribute (workspace)");
      if (static_cast<std::size_t>(bytes) > workspace_limit()) continue;
      workspace_ = static_cast<std::size_t>(bytes);
      passes_nan_ = fits[i] == Fit::passes_nan;
      keep_final(std::move(heuristic));
      keep_final(std::move(configuration));
      plan_ = keep_final(std::move(plan));
      return true;
    }
    return false;
  }
  static Fit fit_of(const Backend& configuration, cudnnDataType_t type, MathMode math) {
    Backend engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.get();
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                   &raw),
          "cudnnBackendGetAttribute (engine)");
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    count = 0;
    check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
          "cudnnBackendGetAttribute (notes)");
    return judge(std::span(notes, static_cast<std::size_t>(count)), type, math);
  }

  bool has_bias_ = false;
  std::vector<Backend> parts_;
  cudnnBackendDescriptor_t graph_ = nullptr, plan_ = nullptr;  // of parts_
  std::size_t workspace_ = 0;
  bool passes_nan_ = false;
};

}  // namespace skein::inline SKEIN_ABI::ops::cudnn
