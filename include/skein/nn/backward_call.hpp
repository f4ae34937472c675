// SPDX-License-Identifier: Apache-2.0
// What backward of a node is told, beside the run and its place: whatever the node, a leaf, a container or a graph.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// What a residual block asks of the ends of its body in backward: the last layer's Frame::dsum, the first one's Frame::adds_dx.
template <class Activation> struct BodyEnds {
  Activation* dsum = nullptr;
  bool adds_dx = false;
};
/// Backward from dy, the gradient of the output, to dx, that of the input. A node returns where it is: dx, or dy where its output
/// is its input's memory.
template <class Activation> struct BackwardCall {
  const Activation* x = nullptr;  ///< as forward has read it, where it is kept
  const Activation* y = nullptr;  ///< as forward has written it, likewise
  const Activation* dy = nullptr;
  Activation* dx = nullptr;  ///< null: nobody wants it
  BodyEnds<Activation> ends{};
  /// Where nobody wants it, an array like dx that a node may use which takes room (MemoryRequirements::room); or null.
  Activation* dx_scratch = nullptr;

  Activation* array_of_dx() const { return dx ? dx : dx_scratch; }
};

}  // namespace skein::inline SKEIN_ABI::nn
