// SPDX-License-Identifier: Apache-2.0
// Step 5 of docs/tutorial.md: points that the training does not see, a metric, an early stop, a picture of the curves.
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
  const auto [training, validation] = sk::data::split(points, 0.8, sk::Seed{1});
  sk::Model<Curve, sk::Shape<1>> model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Adam{.lr = 0.01f}};
  const sk::History history = trainer.fit(training, {.epochs = 12,
                                                     .batch = 20,
                                                     .validate = validation,
                                                     .metrics = {sk::train::MeanAbsoluteError{}},
                                                     .callbacks = {sk::train::EarlyStopping{.patience = 3}}});
  history.write_svg("curve.svg");
  std::printf("validation: mean squared error %.3f in the best epoch\n", history.best().validation.loss);
}
