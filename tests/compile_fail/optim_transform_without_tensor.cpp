// expect: a transform that needs a tensor is given one parameter after the other: give it void tensor(
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/tensor_update.hpp>

namespace sk = skein;

struct Mine {
  static constexpr auto needs = sk::optim::Needs::tensor;
#ifdef SKEIN_TWIN
  template <class S> void tensor(const sk::optim::TensorUpdate<S>& parameter) const {
    parameter.gradient.assign(-parameter.gradient);
  }
#else
  template <class S> S element(const sk::optim::UpdateRates<S>&, S gradient, S, S*) const { return -gradient; }
#endif
};

auto optimizer = sk::optim::chain(Mine{}, sk::optim::Sgd{});
