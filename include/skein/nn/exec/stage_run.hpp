// SPDX-License-Identifier: Apache-2.0
// StageRun: a worker's pass through a part of a network, of one micro-batch. It knows how many layers come before that part, and
// notes what its backward leaves for later: the gradients of parameters, where a layer's backward comes in two halves.
#pragma once
#include <vector>

#include "../backward_call.hpp"
#include "../run.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A worker's pass through a stage.
template <class Scalar, class Device, class Activation> struct StageRun : Run<Scalar, Device, Activation> {
  using Base = Run<Scalar, Device, Activation>;
  using Half = void (*)(StageRun&, const ArenaOffsets&, const BackwardCall<Activation>&);
  struct Deferred {
    Half half;
    ArenaOffsets at;
    BackwardCall<Activation> call;
    bool split;
  };
  std::vector<Deferred> deferred;
  const Activation* x = nullptr;    // its samples, as forward has read them
  const Activation* top = nullptr;  // the gradient of the stage's output, which stays
  int ordinal = 0;                  // layers before the stage: they count for random numbers
  bool halves = false;

  /// A layer's dy must still be there for the second half: the layer keeps what it needs, or it is the stage's own.
  bool defers(const Activation* dy, bool keeps) const { return halves && (keeps || dy == top); }
  void defer(Half half, const ArenaOffsets& at, const BackwardCall<Activation>& call) {
    deferred.push_back({half, at, call, this->context.split});
  }
  void run_deferred() {
    const bool split = this->context.split;
    for (const Deferred& d : deferred) {
      this->context.split = d.split;
      d.half(*this, d.at, d.call);
    }
    this->context.split = split;
    deferred.clear();
  }
  template <class F> F frame(const ArenaOffsets& at, const LayerInfo& info) const {
    F f = Base::template frame<F>(at, info);
    f.ordinal += ordinal;
    return f;
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
