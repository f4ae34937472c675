// expect: an executor needs the most samples of a batch: sk::Executor executor{model, loss, {.capacity = 64}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>

namespace sk = skein;
namespace nn = sk::nn;

int main() {
  sk::Model<nn::Sequential<nn::Linear<8>>, sk::Shape<4>> model;
#ifdef SKEIN_TWIN
  sk::Executor executor{model, nn::Mse{}, {.capacity = 64}};
#else
  sk::Executor executor{model, nn::Mse{}};
#endif
}
