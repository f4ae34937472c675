// expect: Compose: SingleProcess and Alone train one process by itself
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using namespace skein::parallel;

void f(sk::ThreadComm& world) {
  sk::Model<sk::nn::Linear<3>, sk::Shape<2>> model;
#ifndef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, Compose{DataParallel{world}, SingleProcess{}}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, Compose{DataParallel{world}, ModelAverage{world, Period<4>{}}}};
#endif
}
