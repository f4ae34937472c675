// expect: on a GPU a transform of tensors is given the device's: let its tensor() take them
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/tensor_update.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

struct Centralize {
  static constexpr auto needs = sk::optim::Needs::tensor;
#ifdef SKEIN_TWIN
  void tensor(const auto&) const {}
#else
  template <class S> void tensor(const sk::optim::TensorUpdate<S>&) const {}
#endif
};
struct Model {  // what is asked of one
  using device = sk::Cuda;
  static constexpr sk::nn::MemoryRequirements sizes{};
};
using Optimizer = sk::optim::Chain<sk::optim::Sgd, Centralize>;

int main() { sk::train::assert_step<Model, Optimizer, sk::parallel::PolicyState>(); }
