// SPDX-License-Identifier: Apache-2.0
// Trained weights for PyTorch: a file that numpy.load reads, in the layout of a state_dict.
#include <skein/skein.hpp>

#include <cstdio>
#include <string>
namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<32>, sk::nn::Relu, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    const auto digits = sk::data::synthetic_digits(2000, sk::Seed{1});
    sk::Model<Net, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.005f}};
    trainer.fit(digits, {.epochs = 4, .batch = 50, .progress = false});
    sk::save_npz("digits.npz", model, {.layout = sk::WeightLayout::pytorch});
    model.for_each_parameter(
        [](std::string_view name, auto view) { std::printf("%s: %ld values\n", std::string(name).c_str(), view.size()); });
  });
}
