// SPDX-License-Identifier: Apache-2.0
// The networks of nn/models that tests/train/models_test.cpp does not compare with PyTorch's: steps on small images. A step of
// gradient descent lowers the loss by the rate times the squared norm of the gradient, where it is small: so the gradient of
// every layer is that of the loss. Depths of one family share their compiled blocks.
#include <catch2/catch.hpp>

#include <cmath>

#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/models/resnet.hpp>
#include <skein/nn/models/vgg.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

#include "../support/pytorch_network.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace models = skein::models;

namespace {
/// A step so small that the loss falls by a part in 10^8: in double that is seen to seven digits, and curvature is not.
template <class Network, class Input> void descends() {
  using Model = sk::Model<Network, Input, sk::Cpu, double>;
  Model model{sk::Seed{3}};
  const support::Samples<Model> samples(4);
  sk::train::TrainStep step{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0}, sk::parallel::SingleProcess{}};
  step.reserve({.capacity = 4, .threads = 1});
  const sk::optim::StepOptions same{.key = 7};  // Dropout would make another network of each step
  const double first = step.step(samples.batch(), same).mean();
  CHECK((first > 1 && first < 20));  // of ten classes by chance: 2.3
  double norm = 0;
  support::each_element<Model>(
      [&](int, const sk::plan::Entry&, long, long at) { norm += model.gradients().data[at] * model.gradients().data[at]; });
  REQUIRE(norm > 0);
  constexpr double share = 1e-8;
  {
    const auto weights = model.modify();
    for (long i = 0; i < Model::sizes.stored; ++i) weights.data()[i] -= share * first / norm * model.gradients().data[i];
  }
  INFO("loss " << first << ", squared norm of the gradient " << norm);
  CHECK((first - step.step(samples.batch(), same).mean()) / (share * first) == Approx(1).margin(1e-3));
}
}  // namespace

TEST_CASE("ResNet-18, 34 and 101 make steps down their gradient", "[train][models]") {
  descends<models::ResNet<18, 10>, sk::Shape<64, 64, 3>>();
  descends<models::ResNet<34, 10>, sk::Shape<64, 64, 3>>();
  descends<models::ResNet<101, 10>, sk::Shape<64, 64, 3>>();
}

// 2 GiB: scripts/test --all runs it.
TEST_CASE("ResNet-152 makes a step down its gradient", "[train][models][.long]") {
  descends<models::ResNet<152, 10>, sk::Shape<64, 64, 3>>();
}

TEST_CASE("VGG-11 and 16 make steps down their gradient", "[train][models]") {
  descends<models::Vgg<11, 10, 32>, sk::Shape<32, 32, 3>>();
  descends<models::Vgg<16, 10, 32>, sk::Shape<32, 32, 3>>();
}
