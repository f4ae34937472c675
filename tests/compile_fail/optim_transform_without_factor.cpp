// expect: a transform that needs all gradients is given their norm: give it double factor(double norm) const
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>

namespace sk = skein;

struct Mine {
  static constexpr auto needs = sk::optim::Needs::global;
#ifdef SKEIN_TWIN
  double factor(double norm) const { return 1 / norm; }
#else
  void factor(double& norm) const { norm = 1; }
#endif
};

auto optimizer = sk::optim::chain(Mine{}, sk::optim::Sgd{});
