// expect: DataParallel is given the communicator of its ranks: DataParallel{world}
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
#ifdef SKEIN_TWIN
  sk::SelfComm world;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{}};
#endif
}
