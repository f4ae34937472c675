// expect: an optimizer is a value of hyper-parameters: it must be copyable
// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <skein/optim/optimizer.hpp>

struct Mine {
  float lr = 0.1f;
#ifdef SKEIN_TWIN
  std::shared_ptr<float[]> momenta{};
#else
  std::unique_ptr<float[]> momenta{};
#endif
  int state_arrays() const { return 0; }
  template <class Scalar, class Device> void apply(const skein::optim::UpdateCall<Scalar, Device>&) const {}
};

int main() { skein::optim::assert_optimizer<Mine>(); }
