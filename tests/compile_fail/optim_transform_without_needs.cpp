// expect: a gradient transform says what it needs to see at once: give it static constexpr auto needs
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>

namespace sk = skein;

struct Mine {
#ifdef SKEIN_TWIN
  static constexpr auto needs = sk::optim::Needs::element;
#endif
  template <class S> constexpr S element(const sk::optim::UpdateRates<S>&, S gradient, S, S*) const { return -gradient; }
};

auto optimizer = sk::optim::chain(Mine{}, sk::optim::Sgd{});
