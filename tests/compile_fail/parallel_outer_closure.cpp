// expect: an outer optimizer of ModelAverage gets the way to the mean as its gradient, of which there is no loss that L-BFGS could evaluate: take another, as DiLoCo{optim::Sgd{.lr = 0.7f}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/lbfgs/lbfgs.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Outer = sk::optim::Sgd;
#else
using Outer = sk::optim::Lbfgs;
#endif
void start(sk::ThreadComm& world) {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f},
                      sk::parallel::ModelAverage{world, sk::parallel::Period<4>{}, sk::parallel::DiLoCo{Outer{.lr = 0.7f}}}};
}
