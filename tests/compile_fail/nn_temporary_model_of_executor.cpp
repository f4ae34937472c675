// expect: the model must outlive its executor: give it a name
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>>;

int main() {
#ifdef SKEIN_TWIN
  Model model{sk::Seed{1}};
  sk::Executor executor{model, sk::nn::Mse{}, {.capacity = 8}};
#else
  sk::Executor executor{Model{sk::Seed{1}}, sk::nn::Mse{}, {.capacity = 8}};
#endif
}
