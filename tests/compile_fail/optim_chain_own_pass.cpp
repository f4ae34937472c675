// expect: elementwise transforms are fused into the optimizer's pass, and this one has a pass of its own, apply()
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/transform/clip_value.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>

namespace sk = skein;

struct Mine {
  float lr = 0.1f;
  static constexpr int state_arrays() { return 0; }
#ifdef SKEIN_TWIN
  template <class S> constexpr void element(const sk::optim::UpdateRates<S>& at, S gradient, S& value, S*) const {
    value -= at.lr * gradient;
  }
#else
  template <class Scalar, class Device> void apply(const sk::optim::UpdateCall<Scalar, Device>&) const {}
#endif
};
auto optimizer = sk::optim::chain(sk::optim::ClipValue{1}, Mine{});
