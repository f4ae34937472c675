// expect: an optimizer has a learning rate that schedules scale: give it a member float lr
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/optimizer.hpp>

struct Mine {
#ifdef SKEIN_TWIN
  float lr = 0.1f;
#else
  float rate = 0.1f;
#endif
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const skein::optim::UpdateCall<Scalar, Device>&) const {}
};

int main() { skein::optim::assert_optimizer<Mine>(); }
