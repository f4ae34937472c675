// SPDX-License-Identifier: Apache-2.0
// Chooses the kernel of a convolution on the processor.
#pragma once
#include <string_view>

#include "../reference/conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scalars of derived weights and of workspace that a geometry may need, whichever kernel runs.
constexpr long conv2d_derived(const Conv2dGeometry&) { return 0; }
constexpr long conv2d_workspace(const Conv2dGeometry&) { return 0; }

template <class Scalar, Conv2dGeometry G> struct Conv2d {
  static constexpr std::string_view name = "reference";
  static void derive(const Conv2dCall<Scalar>&) {}
  static void prepare(long) {}
  static void forward(const Conv2dCall<Scalar>& c) { reference::conv2d_forward(G, c); }
  static void backward(const Conv2dCall<Scalar>& c) {
    if (c.dx) reference::conv2d_backward_data(G, c);
    reference::conv2d_backward_weights(G, c);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
