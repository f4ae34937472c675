// expect: ModelAverage takes behind the communicator, in this order, its options, a Period and a DiLoCo
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using namespace skein::parallel;

void f(sk::ThreadComm& world) {
  sk::Model<sk::nn::Linear<3>, sk::Shape<2>> model;
#ifndef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, ModelAverage{world, {.weighted = false}, SyncEvery<4>{}}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, ModelAverage{world, {.weighted = false}, Period<4>{}}};
#endif
}
