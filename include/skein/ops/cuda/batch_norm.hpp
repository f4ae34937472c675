// SPDX-License-Identifier: Apache-2.0
// Batch normalisation on the GPU. Training on images, alone: cuDNN's spatial kernels (persistent where they keep nothing from
// forward to backward). With a ReLU behind, with statistics over ranks, on padded rows, on doubles, in evaluation, and where
// cuDNN refuses: own kernels. Both leave the batch's mean and 1 / deviation, so either may run backward.
#pragma once
#include <vector>

#include "../../device/cuda/choices.hpp"
#include "../batch_norm.hpp"
#include "batch_norm_kernels.hpp"
#include "cudnn.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cudnn {

/// Descriptors and workspaces of one call's size; made in microseconds.
class BatchNorm {
 public:
  BatchNorm(long samples, long pixels, int channels, cudnnDataType_t type)
      : type_(type), samples_(samples), pixels_(pixels), channels_(channels) {
    const cudnnHandle_t h = handle();
    check(cudnnSetTensor4dDescriptor(x_.get(), CUDNN_TENSOR_NHWC, type, static_cast<int>(samples), channels,
                                     static_cast<int>(pixels), 1),
          "cudnnSetTensor4dDescriptor", said());
    check(cudnnSetTensor4dDescriptor(parameters_.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, channels, 1, 1),
          "cudnnSetTensor4dDescriptor", said());
    for (const cudnnBatchNormMode_t mode : {CUDNN_BATCHNORM_SPATIAL_PERSISTENT, CUDNN_BATCHNORM_SPATIAL}) {
      std::size_t kept = 0;
      mode_ = mode;
      const cudnnStatus_t status[] = {
          cudnnGetBatchNormalizationTrainingExReserveSpaceSize(h, mode, ops, nullptr, x_.get(), &kept),
          cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(h, mode, ops, x_.get(), x_.get(), x_.get(), parameters_.get(),
                                                                   nullptr, &forward_),
          cudnnGetBatchNormalizationBackwardExWorkspaceSize(h, mode, ops, x_.get(), x_.get(), x_.get(), nullptr, x_.get(),
                                                            parameters_.get(), nullptr, &backward_)};
      found_ = kept == 0;
      for (const cudnnStatus_t s : status) found_ = found_ && s == CUDNN_STATUS_SUCCESS;
      if (found_) break;
    }
  }
  enum class Direction { forward, backward };

  /// Does cuDNN do this direction? It may name workspaces and refuse the call all the same; then it is not asked again.
  bool has(Direction direction) const {
    if (!found_) return false;
    for (const Refusal& r : refusals())
      if (r == refusal(direction)) return false;
    return true;
  }
  /// From now on the calling thread does without cuDNN for this direction of calls like this.
  void refuse(Direction direction) const {
    skein::cuda::choices().detour("cuDNN's batch norm " + said()() +
                                  (direction == Direction::forward ? ", forward" : ", backward") +
                                  ": it plans and then refuses, own kernels run");
    refusals().push_back(refusal(direction));
  }
  std::size_t forward_workspace() const { return forward_; }
  std::size_t backward_workspace() const { return backward_; }

  /// False where cuDNN has no kernel for it: nothing has been written.
  template <class Value> bool forward(const BatchNormCall<Value, float>& call, void* scratch) const {
    return took(cudnnBatchNormalizationForwardTrainingEx(
                    handle(), mode_, ops, one.as(type_), zero.as(type_), x_.get(), call.x, nullptr, nullptr, x_.get(), call.y,
                    parameters_.get(), call.weight, call.bias, call.momentum, call.running_mean, call.running_variance,
                    call.epsilon, call.mean, call.inverse, nullptr, scratch, forward_, nullptr, 0),
                "cudnnBatchNormalizationForwardTrainingEx", Direction::forward);
  }
  /// dweight and dbias are overwritten. False where cuDNN has no kernel for it: nothing has been written.
  template <class Value>
  bool backward(const BatchNormCall<Value, float>& call, float* dweight, float* dbias, void* scratch) const {
    return took(cudnnBatchNormalizationBackwardEx(
                    handle(), mode_, ops, one.as(type_), zero.as(type_), one.as(type_), zero.as(type_), x_.get(), call.x, nullptr,
                    nullptr, x_.get(), call.dy, nullptr, nullptr, x_.get(), call.dx, parameters_.get(), call.weight, nullptr,
                    dweight, dbias, call.epsilon, call.mean, call.inverse, nullptr, scratch, backward_, nullptr, 0),
                "cudnnBatchNormalizationBackwardEx", Direction::backward);
  }

 private:
  static constexpr cudnnBatchNormOps_t ops = CUDNN_BATCHNORM_OPS_BN;
  struct Said {
    long samples, pixels;
    int channels;
    std::string operator()() const { return "of " + shape({samples, pixels, channels}); }
  };
  Said said() const { return {samples_, pixels_, channels_}; }

  struct Refusal {
    int device;
    cudnnDataType_t type;
    long samples, pixels;
    int channels;
    Direction direction;
    bool operator==(const Refusal&) const = default;
  };
  static std::vector<Refusal>& refusals() {
    thread_local std::vector<Refusal> all;
    return all;
  }
  Refusal refusal(Direction direction) const {
    return {skein::cuda::current_device().ordinal, type_, samples_, pixels_, channels_, direction};
  }
  bool took(cudnnStatus_t status, const char* call, Direction direction) const {
    if (supported(status, call, said())) return true;
    refuse(direction);
    return false;
  }

  cudnnDataType_t type_;
  long samples_, pixels_;
  int channels_;
  TensorDescriptor x_, parameters_;
  cudnnBatchNormMode_t mode_ = CUDNN_BATCHNORM_SPATIAL;
  std::size_t forward_ = 0, backward_ = 0;
  bool found_ = false;
};

}  // namespace cudnn

template <> struct BatchNormKernels<Cuda> {
  template <int Channels, long Columns, class Value, class Parameter>
  static void prepare(const BatchNormCall<Value, Parameter>& call) {
    if (call.rows() <= 0) return;
    std::size_t most = Scratch<Parameter>(call.rows(), Columns).total;
    if constexpr (cudnn_takes<Channels, Columns, Value, Parameter>)
      if (by_cudnn<Channels>(call)) {
        const cudnn::BatchNorm own(call.samples, call.pixels, Channels, cudnn::type_of<Value>);
        most = std::max({most, own.forward_workspace(), aligned(2 * Channels * sizeof(float)) + own.backward_workspace()});
      }
    skein::cuda::workspace().reserve(most);
  }

  template <int Channels, long Columns, class Value, class Parameter, class Context>
  static void forward(const BatchNormCall<Value, Parameter>& call, const Context& context) {
    if constexpr (cudnn_takes<Channels, Columns, Value, Parameter>)
      if (call.training && !context.statistics_hook && by_cudnn<Channels>(call)) {
        const cudnn::BatchNorm own(call.samples, call.pixels, Channels, cudnn::type_of<Value>);
        if (own.has(cudnn::BatchNorm::Direction::forward) &&
            own.forward(call, skein::cuda::workspace().get(own.forward_workspace())))
          return;
      }
    const Scratch<Parameter> s(call.rows(), Columns);
    auto* base = static_cast<std::byte*>(skein::cuda::workspace().get(s.total));
    const auto to = s.coefficients(base, Columns);
    const kernel::Statistics<Value, Parameter> statistics{call, to, Channels, call.rows()};
    if (!call.training) {
      skein::cuda::for_each(Columns, statistics);
    } else if (context.statistics_hook) {
      auto* sums = reinterpret_cast<double*>(base + s.sums);
      column_sums(call.rows(), Columns, base, kernel::Moments<Value>{call.x},
                  kernel::StoreSums{sums, Channels, Columns, call.rows()});
      context.reduce_statistics(sums, 2 * Columns + 1);
      skein::cuda::for_each(Columns, kernel::FromSums<kernel::Statistics<Value, Parameter>>{sums, Columns, statistics});
    } else {
      column_sums(call.rows(), Columns, base, kernel::Moments<Value>{call.x}, statistics);
    }
    const kernel::Normalize<Value, Parameter> pass{call, to, Channels};
    row_strips(call.rows(), Columns, pass.aligned(), pass);
  }

  template <int Channels, long Columns, class Value, class Parameter, class Context>
  static void backward(const BatchNormCall<Value, Parameter>& call, const Context& context) {
    if constexpr (cudnn_takes<Channels, Columns, Value, Parameter>)
      if (call.training && !context.statistics_hook && call.dx && by_cudnn<Channels>(call)) {
        const cudnn::BatchNorm own(call.samples, call.pixels, Channels, cudnn::type_of<Value>);
        constexpr std::size_t parameters = aligned(2 * Channels * sizeof(float));
        if (own.has(cudnn::BatchNorm::Direction::backward)) {
          auto* base = static_cast<std::byte*>(skein::cuda::workspace().get(parameters + own.backward_workspace()));
          auto* dweight = reinterpret_cast<float*>(base);
          if (own.backward(call, dweight, dweight + Channels, base + parameters))
            return skein::cuda::for_each(
                Channels, kernel::AddParameterGradients<float>{dweight, dweight + Channels, call.dweight, call.dbias});
        }
      }
    const Scratch<Parameter> s(call.rows(), Columns);
    auto* base = static_cast<std::byte*>(skein::cuda::workspace().get(s.total));
    const auto to = s.coefficients(base, Columns);
    const kernel::Products<Value, Parameter> products{call, Channels};
    kernel::Derivatives<Value, Parameter> derivatives{call, to, Channels, call.rows(), true, call.dx != nullptr};
    if (call.training && call.dx && context.statistics_hook) {
      auto* sums = reinterpret_cast<double*>(base + s.sums);
      derivatives.makes = false;
      column_sums(call.rows(), Columns, base, products,
                  kernel::DerivativesAndSums<Value, Parameter>{derivatives, {sums, Channels, Columns, call.rows()}});
      context.reduce_statistics(sums, 2 * Columns + 1);
      derivatives.adds = false;
      derivatives.makes = true;
      skein::cuda::for_each(Columns, kernel::FromSums<kernel::Derivatives<Value, Parameter>>{sums, Columns, derivatives});
    } else {
      column_sums(call.rows(), Columns, base, products, derivatives);
    }
    if (!call.dx) return;
    const kernel::InputGradient<Value, Parameter> pass{call, to, Channels};
    row_strips(call.rows(), Columns, pass.aligned(), pass);
  }

 private:
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  /// Images in float and the 16-bit types; flat samples may be padded, and have one pixel.
  template <int Channels, long Columns, class Value, class Parameter> static constexpr bool cudnn_takes =
      Channels == Columns&& std::is_same_v<Parameter, float>;
  template <int Channels, class Call> static bool by_cudnn(const Call& call) {
    return call.rows() > 1 && call.pixels > 1 && !call.has_relu && call.rows() * Channels < (1L << 31);
  }

  /// Own kernels' scratch memory: blocks of column sums, sums over ranks, coefficients.
  template <class Parameter> struct Scratch {
    std::size_t sums, parameters, total;
    constexpr Scratch(long rows, long columns)
        : sums(aligned(column_sums_bytes(rows, columns))),
          parameters(sums + aligned(static_cast<std::size_t>(2 * columns + 1) * sizeof(double))),
          total(parameters + static_cast<std::size_t>(3 * columns) * sizeof(Parameter)) {}
    kernel::Coefficients<Parameter> coefficients(std::byte* base, long columns) const {
      auto* first = reinterpret_cast<Parameter*>(base + parameters);
      return {first, first + columns, first + 2 * columns};
    }
  };
};

}  // namespace skein::inline SKEIN_ABI::ops
