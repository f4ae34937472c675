// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over channels (the last extent): PyTorch's BatchNorm1d of flat samples, BatchNorm2d of images. Ioffe and
// Szegedy, ICML 2015. Statistics are summed in double through Context::reduce_statistics, so that the workers of a rank see
// one batch (and ranks too, where the policy fills the hook: SyncBatchNorm).
#pragma once
#include <string>

#include "../core/error.hpp"
#include "../core/half.hpp"
#include "../ops/batch_norm.hpp"
#include "normalization_layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Options: Epsilon<N, D> (default 1/100000), Momentum<N, D> (the weight of the new statistics; default 1/10). Training uses
/// the batch's mean and variance and keeps running ones (the variance unbiased); evaluation uses those. Training throws
/// ArgumentError where a batch has one value of each channel.
template <class... Options> struct BatchNorm {
  using options = detail::LayerOptions<List<Epsilon<1, 100000>, Momentum<1, 10>>, Options...>;
  static constexpr double epsilon = detail::option<Epsilon>(options{}).ratio();
  static constexpr double momentum = detail::option<Momentum>(options{}).ratio();

  static constexpr LayerInfo describe(Extents in) {
    LayerInfo info = detail::normalization_info(in);
    const Extents channels{1, {in.last()}};
    info.buffers[0] = {.name = "running_mean", .extents = channels, .init = Init::zeros};
    info.buffers[1] = {.name = "running_var", .extents = channels, .init = Init::ones};
    info.batch_statistics = 2L * in.last();  // mean and 1 / deviation of the batch
    info.flops = 4 * in.count();
    info.couples_batch = true;
    return info;
  }
  template <class Device> static constexpr KernelNeeds needs(Extents in) { return ops::batch_norm_needs<Device>(width(in)); }

  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  template <class In, class Frame> static void forward(Frame& f) {
    Kernels<Frame>::template forward<In::extents.last(), width(In::extents)>(call<In>(f), *f.context);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    Kernels<Frame>::template backward<In::extents.last(), width(In::extents)>(call<In>(f), *f.context);
  }
  /// Adds the gradient of weight and bias over the samples of f alone to f.gradients.
  template <class In, class Frame> static void unit_gradient(Frame& f) { backward<In>(f); }
  template <class In, class Frame> static void prepare(Frame& f) {
    Kernels<Frame>::template prepare<In::extents.last(), width(In::extents)>(call<In>(f));
  }

  /// The layer's memory as the operation wants it; Rectifies: with a ReLU behind it.
  template <class In, bool Rectifies = false, class Frame> static auto call(Frame& f) {
    constexpr long channels = In::extents.last(), pitch = row_pitch(channels);
    assert_several_values<In>(f);
    using Call = ops::BatchNormCall<typename Frame::Activation, typename Frame::Scalar>;
    Call c = detail::normalization_call<Call, In>(f);
    c.epsilon = epsilon;
    c.momentum = f.context->again ? 0 : momentum;
    c.training = f.context->training();
    c.has_relu = Rectifies;
    c.running_mean = f.buffers;
    c.running_variance = f.buffers + pitch;
    c.mean = f.batch_statistics;
    c.inverse = f.batch_statistics + channels;
    if constexpr (Rectifies && on_host<typename Frame::Device>) {
      c.scale = c.inverse + channels;
      c.shift = c.scale + channels;
    }
    return c;
  }

  /// Columns of the batch as a dense matrix: a flat sample is a padded row, whose gap is columns of which nothing is used.
  static constexpr long width(const Extents& in) { return in.flat() ? row_pitch(in.last()) : in.last(); }

 private:
  /// One value of each channel is its own mean: throws, as PyTorch does. Where ranks share their statistics, of all of them.
  template <class In, class Frame> static void assert_several_values(const Frame& f) {
    const auto& context = *f.context;
    const long samples = context.statistics_hook ? context.global_total : context.total;
    if (!context.training() || samples * In::extents.count() != In::extents.last()) return;
    throw ArgumentError(
        text("layer {} (BatchNorm of {} channels) trains on a batch of 1 sample, and has one value of each channel: its variance "
             "is 0. Take larger batches; the short last batch of an epoch is left out by .loader = {.last = "
             "data::LastBatch::drop} of fit, .last of a Loader; ranks share their statistics with SyncBatchNorm. In a Pipeline "
             "the batch is a micro-batch: give .batch and .micro_batches such that the last has two samples",
             f.ordinal, In::extents.last()));
  }

  template <class Frame> using Kernels = ops::BatchNormKernels<typename Frame::Device>;
};

}  // namespace skein::inline SKEIN_ABI::nn
