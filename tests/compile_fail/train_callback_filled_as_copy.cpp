// expect: the trainer would fill a copy of this callback: hand it over by reference, .callbacks = {std::ref(log)}, and read it afterwards
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto data = sk::data::from_tensors(sk::zeros<float>(8, 1), sk::zeros<float>(8, 1));
  sk::train::LearningRateLog log;
#ifdef SKEIN_TWIN
  trainer.fit(data, {.batch = 4, .callbacks = {std::ref(log), sk::train::EarlyStopping{}}});
#else
  trainer.fit(data, {.batch = 4, .callbacks = {log, sk::train::EarlyStopping{}}});
#endif
  return log.rates.empty();
}
