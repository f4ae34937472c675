// expect: a communicator has share(std::size_t bytes), which gives comm::SharedPages, and declares comm::Capability::shares: both or neither
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct Sharing : sk::SelfComm {
  static constexpr sk::comm::Capabilities capabilities{sk::comm::Capability::nodes, sk::comm::Capability::shares};
#ifdef SKEIN_TWIN
  sk::comm::SharedPages share(std::size_t) { return {}; }
#endif
};

int main() {
  Sharing world;
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
}
