// SPDX-License-Identifier: Apache-2.0
// Softmax over the last extent: each flat sample, or each position of an image. For training a classifier take CrossEntropy,
// which has it inside.
#pragma once
#include "../core/half.hpp"
#include "../ops/row_softmax.hpp"
#include "layer.hpp"
#include "output_kind.hpp"

namespace skein::inline SKEIN_ABI::nn {

namespace detail {
/// Softmax and LogSoftmax.
template <bool Log> struct RowSoftmax {
  static constexpr LayerInfo describe(Extents in) { return {.output = in, .flops = 4 * in.count(), .saves_output = true}; }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;
  template <class In, class Frame> static void prepare(Frame&) { ops::row_softmax_prepare<typename Frame::Device>(); }
  template <class In, class Frame> static void forward(Frame& f) {
    ops::row_softmax<typename Frame::Device, Log>(rows<In>(f.batch), In::extents.last(), pitch<In>, f.x, f.y);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (!f.dx) return;
    const typename Frame::Activation* y = f.y;
    ops::row_softmax_backward<typename Frame::Device, Log>(rows<In>(f.batch), In::extents.last(), pitch<In>, y, f.dy, f.dx);
  }

 private:
  template <class In> static constexpr long rows(long batch) { return batch * (In::count / In::extents.last()); }
  template <class In> static constexpr long pitch = In::extents.flat() ? row_pitch(In::count) : In::extents.last();
};
}  // namespace detail

/// y = exp(x) / sum(exp(x)); the row's maximum is subtracted first.
struct Softmax : detail::RowSoftmax<false> {
  static constexpr OutputKind gives = OutputKind::probabilities;
};

}  // namespace skein::inline SKEIN_ABI::nn
