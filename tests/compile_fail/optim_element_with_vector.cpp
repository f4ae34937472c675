// expect: an optimizer with element() goes into kernels by value: it must be trivially copyable
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/optim/optimizer.hpp>

struct Mine {
  float lr = 0.1f;
#ifdef SKEIN_TWIN
  float factors[4] = {};
#else
  std::vector<float> factors{};
#endif
  static constexpr int state_arrays() { return 0; }
  template <class S> constexpr void element(const skein::optim::UpdateRates<S>& at, S gradient, S& value, S*) const {
    value -= at.lr * gradient;
  }
};

int main() { skein::optim::assert_optimizer<Mine>(); }
