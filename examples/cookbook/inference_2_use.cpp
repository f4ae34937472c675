// SPDX-License-Identifier: Apache-2.0
// Inference in another program: the network's type and the file are enough. No gradients, no optimizer.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    sk::Model<Net, sk::Shape<28, 28, 1>> model;
    sk::Predictor predictor{model};
    predictor.load("classifier.skein");

    const auto digits = sk::data::synthetic_digits(5, sk::Seed{7}).normalize(0, 1);  // raw: pixels from 0 to 1
    const sk::Tensor<float, 2> logits = predictor.predict(digits);                   // (5, 10)
    for (int i = 0; i < 5; ++i) {
      const auto p = sk::eval(exp(logits(i) - max(logits(i))));  // softmax, without its sum
      std::printf("digit %d: says %ld, probability %.2f\n", digits.label(i), argmax(p), static_cast<double>(1 / sum(p)));
    }
  });
}
