// SPDX-License-Identifier: Apache-2.0
// The memory of a convolution, or of a transposed one, as its operation wants it.
#pragma once
#include "../ops/conv2d.hpp"

namespace skein::inline SKEIN_ABI::nn::detail {

/// The call of a layer whose parameters are `weight` stored scalars, and the bias behind them where it HasBias.
template <bool HasBias, class Frame> ops::Conv2dCall<typename Frame::Scalar> convolution_call(Frame& f, long weight) {
  ops::Conv2dCall<typename Frame::Scalar> c;
  c.batch = f.batch;
  c.x = f.x;
  c.weight = f.parameters;
  c.bias = HasBias ? f.parameters + weight : nullptr;
  c.y = f.y;
  c.dy = f.dy;
  c.dx = f.dx;
  c.dweight = f.gradients;
  c.dbias = HasBias && f.gradients ? f.gradients + weight : nullptr;
  c.packed_weights = f.packed_weights;
  c.workspace = f.workspace;
  return c;
}

}  // namespace skein::inline SKEIN_ABI::nn::detail
