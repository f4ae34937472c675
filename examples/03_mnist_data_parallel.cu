// SPDX-License-Identifier: Apache-2.0
// LeNet-5 on MNIST, data-parallel on the GPUs of this process: a rank a GPU, NCCL between them. All of them, or those that are
// named: --gpus 0,1.
// ctest: --epochs 2 --samples 256 --gpus 0
// ctest expects: test accuracy [1-9][0-9.]* % after 2 epochs .* on 1 GPUs
// ctest needs 2 GPUs: --epochs 2 --samples 256 --gpus 0,1
// ctest expects: test accuracy [1-9][0-9.]* % after 2 epochs .* on 2 GPUs
#include <algorithm>
#include <cstdio>
#include <vector>

#include <skein/nccl.hpp>
namespace sk = skein;

// clang-format off
struct LeNet : sk::nn::Sequential<
    sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,      // (14, 14, 6)
    sk::nn::Conv2d<16, sk::Kernel<5>>,                sk::nn::Relu, sk::nn::MaxPool2d<2>,      // (5, 5, 16)
    sk::nn::Flatten, sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>> {};
// clang-format on

struct Options {
  int epochs = 5;
  long samples = 60'000;
  float lr = 0.05f;
  std::vector<int> gpus;

  void flags(sk::Flags& f) {
    f("epochs", epochs, "passes over the training data").at_least(1);
    f("samples", samples, "of the training data").at_least(1);
    f("lr", lr, "learning rate").at_least(0);
    f("gpus", gpus, "their ordinals; without it all").at_least(0);
  }
};

void run(const Options& o) {
  sk::spawn(o.gpus.empty() ? sk::LocalDevices{} : sk::LocalDevices(o.gpus), [&](sk::NcclComm& world) {
    const auto digits = sk::data::mnist_or_synthetic();
    const auto train = digits.train.slice(0, std::min<long>(o.samples, digits.train.size())),
               test = digits.test.slice(0, std::min<long>(o.samples, digits.test.size()));
    sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cuda> model{sk::Seed{42}, world.where()};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = o.lr, .momentum = 0.9f},
                        sk::parallel::DataParallel{world}};
    const sk::History history = trainer.fit(train, {.epochs = o.epochs, .batch = 64, .validate = test});
    if (world.rank() == 0)
      std::printf("test accuracy %.2f %% after %d epochs of %s on %d GPUs, in %.1f s\n", 100 * history.back().validation.accuracy,
                  o.epochs, digits.source.c_str(), world.size(), history.seconds());
  });
}

int main(int argc, char** argv) { return sk::run<Options>(argc, argv, run); }
