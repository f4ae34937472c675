// expect: Adam has no .betas: they are two numbers, Adam{.beta1 = 0.9, .beta2 = 0.999}
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/adam.hpp>

int main() {
#ifdef SKEIN_TWIN
  const skein::optim::Adam optimizer{.lr = 0.1f, .beta1 = 0.8, .beta2 = 0.99};
#else
  const skein::optim::Adam optimizer{.lr = 0.1f, .betas = {0.8, 0.99}};
#endif
  (void)optimizer;
}
