// expect: an optimizer says how many arrays of state it keeps: give it int state_arrays() const
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/optimizer.hpp>

struct Mine {
  float lr = 0.1f;
#ifdef SKEIN_TWIN
  int state_arrays() const { return 0; }
#endif
  template <class Scalar, class Device> void apply(const skein::optim::UpdateCall<Scalar, Device>&) const {}
};

int main() { skein::optim::assert_optimizer<Mine>(); }
