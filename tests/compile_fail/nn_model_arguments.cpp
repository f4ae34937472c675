// expect: the second argument of a Model is the shape of a sample, and the first is the network: sk::Model<Network, sk::Shape<28, 28, 1>>, or sk::Tokens<T>
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
using Network = sk::nn::Sequential<sk::nn::Linear<10>>;

int main() {
#ifdef SKEIN_TWIN
  sk::Model<Network, sk::Shape<4>> model{sk::Seed{1}};
#else
  sk::Model<sk::Shape<4>, Network> model{sk::Seed{1}};
#endif
  sk::Executor executor{model, sk::nn::Mse{}, {.capacity = 4}};
  return model.parameter_count == 50 ? 0 : 1;
}
