// expect: a policy state that declares Capability::synchronizes_gradients says among whom, by int rank() const and int ranks() const of its own, which one has that derives from CommPolicyState<Comm, Scalar, Device>: else every rank would train on the whole of each batch
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
#ifdef SKEIN_TWIN
    int rank() const { return 0; }
    int ranks() const { return 1; }
#endif
    bool synchronizes_gradients() const { return true; }
    void gradient_ready(long, long) {}
    void finish_gradients() {}
  };
  template <class R> State bind(const R&) const { return {}; }
};

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, Mine{}};
}
