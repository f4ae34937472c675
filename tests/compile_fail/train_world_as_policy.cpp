// expect: a communicator is no policy, which says what its ranks exchange: Trainer{model, loss, optimizer, DataParallel{world}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::spawn(2, [](sk::ThreadComm& world) {
    sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
#ifdef SKEIN_TWIN
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
#else
    sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, world};
#endif
  });
}
