// SPDX-License-Identifier: Apache-2.0
// Step 8 of docs/tutorial.md: how many digits does the trained network misread? Reads the file of step 7.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Digits =
    sk::nn::Sequential<sk::nn::Conv2d<8, sk::Kernel<5>>, sk::nn::Relu, sk::nn::MaxPool2d<2>, sk::nn::Flatten, sk::nn::Linear<10>>;

int main() {
  const auto test = sk::data::synthetic_digits(1000, sk::Seed{2});
  sk::Model<Digits, sk::Shape<28, 28, 1>> model;
  sk::Predictor predictor{model};
  predictor.load("digits.skein");
  const sk::Tensor<long, 1> says = argmax(predictor.predict(test), 1);  // (1000): of the 10 outputs the largest
  long wrong = 0;
  for (long i = 0; i < 1000; ++i) wrong += says(i) != test.label(i);
  std::printf("%ld of 1000 digits are misread\n", wrong);
}
