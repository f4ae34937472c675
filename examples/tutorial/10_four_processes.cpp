// SPDX-License-Identifier: Apache-2.0
// Step 10 of docs/tutorial.md: the same with processes, under mpirun, on one machine or several.
// ctest on 4 ranks:
#include <skein/skein.hpp>
#include <skein/mpi.hpp>

#include <cstdio>
namespace sk = skein;

using Digits =
    sk::nn::Sequential<sk::nn::Conv2d<8, sk::Kernel<5>>, sk::nn::Relu, sk::nn::MaxPool2d<2>, sk::nn::Flatten, sk::nn::Linear<10>>;

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    sk::MpiComm world{argc, argv};  // every process that mpirun starts is a rank
    const auto training = sk::data::synthetic_digits(4000, sk::Seed{1});
    const auto test = sk::data::synthetic_digits(1000, sk::Seed{2});
    sk::Model<Digits, sk::Shape<28, 28, 1>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9},
                        sk::parallel::DataParallel{world}};
    const sk::History history = trainer.fit(training, {.epochs = 3, .batch = 50, .validate = test});
    trainer.save("digits.skein");
    if (world.rank() == 0)
      std::printf("%d ranks: test accuracy %.1f %%\n", world.size(), 100 * history.back().validation.accuracy);
  });
}
