// expect: Sharded cuts the parameters anywhere, and a transform of tensors (Lars) wants each of them whole
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Linear<1>, sk::Shape<1>>;
#ifdef SKEIN_TWIN
using Policy = sk::parallel::DataParallel<sk::SelfComm>;
#else
using Policy = sk::parallel::DataParallel<sk::SelfComm, sk::parallel::Sharded<1>>;
#endif
using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Lars>;

int main() {
  sk::SelfComm world;
  Model model;
  sk::train::TrainStep<Model, sk::nn::Mse, Optimizer, Policy> train_step{
      model, {}, {sk::optim::Sgd{}, sk::optim::Lars{}}, Policy{world}};
}
