// SPDX-License-Identifier: Apache-2.0
// Step 7 of docs/tutorial.md: images, classes, a convolutional network.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Digits = sk::nn::Sequential<sk::nn::Conv2d<8, sk::Kernel<5>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,  // (12, 12, 8)
                                  sk::nn::Flatten, sk::nn::Linear<10>>;

int main() {
  const auto training = sk::data::synthetic_digits(4000, sk::Seed{1});  // drawn digits, 28 x 28; mnist() has real ones
  const auto test = sk::data::synthetic_digits(1000, sk::Seed{2});
  sk::Model<Digits, sk::Shape<28, 28, 1>> model{sk::Seed{1}};  // height, width, channels
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}};
  const sk::History history = trainer.fit(training, {.epochs = 3, .batch = 50, .validate = test});
  trainer.save("digits.skein");
  std::printf("test accuracy %.1f %%\n", 100 * history.back().validation.accuracy);
}
