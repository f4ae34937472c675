// expect: Linear needs at least one output
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>

#ifdef SKEIN_TWIN
constexpr int outputs = 1;
#else
constexpr int outputs = 0;
#endif

namespace sk = skein;
namespace nn = sk::nn;

int main() {
  sk::Model<nn::Sequential<nn::Linear<outputs>, nn::Relu, nn::Linear<3>>, sk::Shape<4>> model;
  sk::Executor executor{model, nn::Mse{}, {.capacity = 4}};
}
