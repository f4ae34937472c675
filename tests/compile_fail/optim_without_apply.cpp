// expect: an optimizer says what becomes of an element, or updates a range of the arena: give it void element(
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/optimizer.hpp>

struct Mine {
  float lr = 0.1f;
  int state_arrays() const { return 0; }
#ifdef SKEIN_TWIN
  template <class Scalar, class Device> void apply(const skein::optim::UpdateCall<Scalar, Device>&) const {}
#else
  void step(float* parameters, const float* gradients, long n) {
    while (n-- > 0) *parameters++ -= lr * *gradients++;
  }
#endif
};

int main() { skein::optim::assert_optimizer<Mine>(); }
