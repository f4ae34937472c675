// expect: Reproducible: a virtual shard is a batch of its own, and batch normalization would take its statistics from that
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Norm = sk::nn::LayerNorm<>;
#else
using Norm = sk::nn::BatchNorm<>;
#endif
using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<4>, Norm, sk::nn::Linear<1>>, sk::Shape<1>>;
using Policy = sk::parallel::DataParallel<sk::SelfComm, sk::parallel::Reproducible<8>>;

int main() {
  sk::SelfComm world;
  Model model;
  sk::train::TrainStep<Model, sk::nn::Mse, sk::optim::Sgd, Policy> train_step{model, {}, {}, Policy{world}};
}
