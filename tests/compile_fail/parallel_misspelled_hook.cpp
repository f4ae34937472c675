// expect: a policy state that declares Capability::synchronizes_gradients has bool synchronizes_gradients() const, void gradient_ready(long begin, long end) and void finish_gradients() of its own: one is missing
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct Mine : sk::parallel::PolicyBase {
  struct State : sk::parallel::PolicyState {
    static constexpr sk::parallel::Capabilities capabilities{sk::parallel::Capability::synchronizes_gradients};
    int rank() const { return 0; }
    int ranks() const { return 1; }
    bool synchronizes_gradients() const { return true; }
#ifdef SKEIN_TWIN
    void gradient_ready(long, long) {}
#else
    void gradients_ready(long, long) {}
#endif
    void finish_gradients() {}
  };
  template <class R> State bind(const R&) const { return {}; }
};

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, Mine{}};
}
