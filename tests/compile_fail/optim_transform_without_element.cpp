// expect: a transform that needs an element says what becomes of one: give it S element(
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>

namespace sk = skein;

struct Mine {
  static constexpr auto needs = sk::optim::Needs::element;
#ifdef SKEIN_TWIN
  template <class S> constexpr S element(const sk::optim::UpdateRates<S>&, S gradient, S, S*) const { return -gradient; }
#else
  template <class S> constexpr void element(const sk::optim::UpdateRates<S>&, S& gradient, S, S*) const { gradient = -gradient; }
#endif
};

auto optimizer = sk::optim::chain(Mine{}, sk::optim::Sgd{});
