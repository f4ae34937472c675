// expect: the trainer would fill a copy of this metric: hand it over by reference, .metrics = {std::ref(matrix)}, and read it afterwards
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<2>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}};
  const auto data = sk::data::from_tensors(sk::zeros<float>(8, 1), std::vector<std::int32_t>(8));
  sk::train::ConfusionMatrix matrix{2};
#ifdef SKEIN_TWIN
  trainer.fit(data, {.batch = 4, .validate = data, .metrics = {std::ref(matrix), sk::train::F1{}}});
#else
  trainer.fit(data, {.batch = 4, .validate = data, .metrics = {matrix}});
#endif
  return matrix.at(0, 0) > 0;
}
