// expect: a policy derives from parallel::PolicyBase, which answers what it does not say itself
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
struct Mine : sk::parallel::PolicyBase {
#else
struct Mine {
#endif
  template <class R> sk::parallel::PolicyState bind(const R&) const { return {}; }
};

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, Mine{}};
}
