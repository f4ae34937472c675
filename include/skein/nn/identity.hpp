// SPDX-License-Identifier: Apache-2.0
// Identity: hands its input on, without a copy. The default shortcut of Residual.
#pragma once
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// y = x, in the same memory: the shortcut of a plain Residual.
struct Identity {
  static constexpr bool keeps_output_kind = true;
  static constexpr LayerInfo describe(Extents in) { return {.output = in, .aliases_input = true}; }
  template <class In, class Frame> static void forward(Frame&) {}
  template <class In, class Frame> static void backward(Frame&) {}
};

}  // namespace skein::inline SKEIN_ABI::nn
