// expect: an optimizer says how many arrays of state it keeps: give it int state_arrays() const
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct Own {
  float lr = 0.1f;
#ifdef SKEIN_TWIN
  int state_arrays() const { return 0; }
#endif
  template <class Scalar, class Device> void apply(const sk::optim::UpdateCall<Scalar, Device>&) const {}
};

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, Own{}};
}
