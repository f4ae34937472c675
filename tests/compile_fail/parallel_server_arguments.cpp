// expect: ParameterServer takes behind the communicator its options and a Staleness, in this order
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
using namespace skein::parallel;

void f(sk::ThreadComm& world) {
  sk::Model<sk::nn::Linear<3>, sk::Shape<2>> model;
#ifndef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{},
                      ParameterServer{world, Staleness<4>{}, ParameterServerOptions{.servers = 2}}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, ParameterServer{world, {.servers = 2}, Staleness<4>{}}};
#endif
}
