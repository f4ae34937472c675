// expect: Kfac is for the host so far: a GPU's layers do not hand over their factors, and cuSOLVER is not there
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

using OnHost = sk::Model<sk::nn::Linear<3>, sk::Shape<2>>;
struct Model {  // what is asked of one
#ifdef SKEIN_TWIN
  using device = sk::Cpu;
#else
  using device = sk::Cuda;
#endif
  using precision = OnHost::precision;
  static constexpr const auto& program = OnHost::program;
  static constexpr const auto& sizes = OnHost::sizes;
};
using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Kfac>;

int main() { sk::train::assert_step<Model, Optimizer, sk::parallel::PolicyState>(); }
