// expect: PostLocalSgd takes behind the communicator, in this order, options of ModelAverage, a SyncFirst and a Period
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/post_local_sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using namespace skein::parallel;

void f(sk::ThreadComm& world) {
  sk::Model<sk::nn::Linear<3>, sk::Shape<2>> model;
#ifndef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, PostLocalSgd{world, Period<8>{}, SyncFirst<500>{}}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, PostLocalSgd{world, SyncFirst<500>{}, Period<8>{}}};
#endif
}
