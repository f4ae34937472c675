// expect: for any S, which writes into value, a reference (S&)
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/optimizer.hpp>

struct Mine {
  float lr = 0.1f;
  static constexpr int state_arrays() { return 0; }
#ifdef SKEIN_TWIN
  template <class S> constexpr void element(const skein::optim::UpdateRates<S>& at, S gradient, S& value, S*) const {
#else
  template <class S> constexpr void element(const skein::optim::UpdateRates<S>& at, S gradient, S value, S*) const {
#endif
      value -= at.lr * gradient;
}
}
;

int main() { skein::optim::assert_optimizer<Mine>(); }
