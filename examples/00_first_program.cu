// SPDX-License-Identifier: Apache-2.0
// The first program on GPUs: Cpu became Cuda and MpiComm became NcclComm. Alone on one GPU, or a rank on each of as many as
// torchrun, Slurm or mpirun starts.
// ctest: not run
// [quote program]
#include <skein/nccl.hpp>
namespace sk = skein;

// clang-format off
using LeNet = sk::nn::Sequential<
    sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Conv2d<16, sk::Kernel<5>>,                sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Flatten, sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>>;
// clang-format on

int main(int argc, char** argv) {
  sk::NcclComm world{argc, argv};          // one process without a launcher: a world of one
  auto [train, test] = sk::data::mnist();  // $SKEIN_DATA/mnist, ../shared/data/mnist or data/mnist
  sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cuda> model{sk::Seed{42}, world.where()};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9f},
                      sk::parallel::DataParallel{world}};
  sk::History history = trainer.fit(train, {.epochs = 5, .batch = 128, .validate = test});
}
// [end]
