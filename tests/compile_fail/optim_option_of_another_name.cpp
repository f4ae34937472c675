// expect: an optimizer has no option of this name: its learning rate is .lr, as in Sgd{.lr = 0.1f}
// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/sgd.hpp>

int main() {
#ifdef SKEIN_TWIN
  const skein::optim::Sgd optimizer{.lr = 0.1f, .momentum = 0.9};
#else
  const skein::optim::Sgd optimizer{.learning_rate = 0.1, .momentum = 0.9};
#endif
  (void)optimizer;
}
