// SPDX-License-Identifier: Apache-2.0
// Step 6 of docs/tutorial.md: the training goes into a file, a predictor reads it.
#include <skein/skein.hpp>

#include <cmath>
#include <cstdio>
#include <vector>
namespace sk = skein;

using Curve = sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Tanh, sk::nn::Linear<1>>;
using CurveModel = sk::Model<Curve, sk::Shape<1>>;

int main() {
  std::vector<float> x, y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(0.002f * static_cast<float>(i) - 1);
    y.push_back(std::sin(3 * x.back()));
  }
  const auto points = sk::data::from_tensors(x, y);
  CurveModel model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  trainer.fit(points, {.epochs = 15, .batch = 20, .progress = false});
  trainer.save("curve.skein");

  CurveModel loaded;  // could be in another program: it needs the network and the file, no optimizer
  sk::Predictor predictor{loaded};
  predictor.load("curve.skein");
  const sk::Tensor<float, 2> outputs = predictor.predict(sk::Tensor<float, 2>{{-0.5f}, {0}, {0.5f}});  // (3, 1)
  for (int i = 0; i < 3; ++i) std::printf("sin(%4.1f) = %5.1f\n", 1.5 * (i - 1), static_cast<double>(outputs(i, 0)));
}
