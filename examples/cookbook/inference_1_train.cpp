// SPDX-License-Identifier: Apache-2.0
// Trains a classifier and saves it. The next program uses it.
#include <skein/skein.hpp>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
    trainer.fit(digits, {.epochs = 4, .batch = 50, .progress = false});
    trainer.keep(digits.normalization());  // goes into the file: programs that use it give raw images
    trainer.save("classifier.skein");
  });
}
