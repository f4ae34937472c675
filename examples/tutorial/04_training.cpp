// SPDX-License-Identifier: Apache-2.0
// Step 4 of docs/tutorial.md: a trainer fits the model to the data.
#include <skein/skein.hpp>

#include <cmath>
#include <cstdio>
#include <vector>
namespace sk = skein;

using Curve = sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Tanh, sk::nn::Linear<1>>;

int main() {
  std::vector<float> x, y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(0.002f * static_cast<float>(i) - 1);
    y.push_back(std::sin(3 * x.back()));
  }
  const auto points = sk::data::from_tensors(x, y);
  sk::Model<Curve, sk::Shape<1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  const sk::History history = trainer.fit(points, {.epochs = 5, .batch = 20});
  for (const auto& epoch : history) std::printf("mean squared error %.4f\n", epoch.training.loss);
}
