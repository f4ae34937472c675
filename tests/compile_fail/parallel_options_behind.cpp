// expect: the options of DataParallel are types such as SyncEvery<4>, Compress<...>, Sharded<1>: one of these is none
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using namespace skein::parallel;

void f(sk::ThreadComm& world) {
  sk::Model<sk::nn::Linear<3>, sk::Shape<2>> model;
#ifndef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, DataParallel{world, SyncEvery<4>{}, {.bucket_bytes = 65536}}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, DataParallel{world, {.bucket_bytes = 65536}, SyncEvery<4>{}}};
#endif
}
