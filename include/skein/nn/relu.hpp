// SPDX-License-Identifier: Apache-2.0
// Relu: max(x, 0).
#pragma once
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

struct Relu {
  static constexpr LayerInfo describe(Extents in) { return {.output = in, .flops = in.count(), .saves_output = true}; }
  template <class In, class Frame> static void forward(Frame& f) {
    const long n = f.batch * sample_pitch(In::extents);
    for (long i = 0; i < n; ++i) f.y[i] = f.x[i] > 0 ? f.x[i] : typename Frame::Scalar(0);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    const long n = f.dx ? f.batch * sample_pitch(In::extents) : 0;
    for (long i = 0; i < n; ++i) f.dx[i] = f.y[i] > 0 ? f.dy[i] : typename Frame::Scalar(0);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
