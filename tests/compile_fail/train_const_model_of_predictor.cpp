// expect: a trainer, a predictor and an executor take the model as Model&, not const
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/train/predictor.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>>;

int main() {
#ifdef SKEIN_TWIN
  Model model{sk::Seed{1}};
#else
  const Model model{sk::Seed{1}};
#endif
  sk::Predictor predictor{model};
  predictor.load("training");
}
