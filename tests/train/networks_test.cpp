// SPDX-License-Identifier: Apache-2.0
// Whole networks against PyTorch, through the TrainStep: LeNet-5 with Sgd, a strided CNN with BatchNorm and Adam, a perceptron
// with LayerNorm, Gelu and AdamW, two U-Nets with a class a pixel. The first step's loss and gradients, the losses of 100 steps,
// and the loss in evaluation phase. Gradients are compared by their products with three fixed vectors, so that an element in the
// wrong place shows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <skein/nn/avg_pool2d.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/models/unet.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/adamw.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

#include "../fixtures/networks.hpp"
#include "../support/pytorch_network.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace fixture = fixtures::networks;
using support::apart_from;
using support::Expected;
using support::Samples;

namespace {

using LeNet =
    nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>,
                   nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>>;
using Cnn = nn::Sequential<nn::Conv2d<5, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::BatchNorm<>, nn::Relu,
                           nn::MaxPool2d<3, sk::Stride<2>>, nn::Conv2d<8, sk::Kernel<3>>, nn::Relu, nn::AvgPool2d<2>, nn::Flatten,
                           nn::Linear<10>>;
using Mlp = nn::Sequential<nn::Linear<32>, nn::LayerNorm<>, nn::Gelu, nn::Linear<10>>;

template <class Net, class Input, class Scalar, class Optimizer>
void follows(const Optimizer& optimizer, long count, int threads, const Expected& expected) {
  using Model = sk::Model<Net, Input, sk::Cpu, Scalar>;
  constexpr bool exact = std::is_same_v<Scalar, double>;
  constexpr double first = exact ? 1e-10 : 1e-5, later = exact ? 1e-8 : 1e-4;
  constexpr double small = 1e-3;  // a lesser loss is a difference of logits that are 10,000 times as great
  INFO((exact ? "double, " : "float, ") << "threads: " << threads);
  Model model;
  support::set_parameters(model);
  const Samples<Model> samples(count);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{}, optimizer, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = count, .threads = threads});

  const std::size_t steps = exact ? expected.losses.size() : 20;
  REQUIRE(expected.losses.size() == 100);
  for (std::size_t k = 0; k < steps; ++k) {
    const double loss = train_step.step(samples.batch()).mean(), off = apart_from(loss, expected.losses[k], small);
    INFO("step " << k << ": " << loss << " for " << expected.losses[k] << ", apart by " << loss - expected.losses[k]);
    CHECK(off <= (k == 0 ? first : later));
    if (k == 0 && threads == 1) support::check_gradients(model, expected, first);
  }
  if (exact) CHECK(apart_from(train_step.evaluate(samples.batch()).mean(), expected.evaluation[0], small) <= later);
}

template <class Net, class Input, class Optimizer>
void follows(const Optimizer& optimizer, long count, const Expected& expected) {
  for (int threads : {1, 2}) {
    follows<Net, Input, double>(optimizer, count, threads, expected);
    follows<Net, Input, float>(optimizer, count, threads, expected);
  }
}

}  // namespace

TEST_CASE("LeNet-5 with momentum trains as in PyTorch", "[train][networks]") {
  using namespace fixture;
  follows<LeNet, sk::Shape<28, 28, 1>>(sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}, 8,
                                       {lenet_projections, lenet_norms, lenet_losses, lenet_evaluation});
}

TEST_CASE("a strided CNN with BatchNorm and Adam trains as in PyTorch", "[train][networks]") {
  using namespace fixture;
  follows<Cnn, sk::Shape<24, 24, 3>>(sk::optim::Adam{.lr = 1e-3f}, 6, {cnn_projections, cnn_norms, cnn_losses, cnn_evaluation});
}

TEST_CASE("a perceptron with LayerNorm, Gelu and AdamW trains as in PyTorch", "[train][networks]") {
  using namespace fixture;
  follows<Mlp, sk::Shape<20>>(sk::optim::AdamW{.lr = 1e-3f, .weight_decay = 0.05f}, 8,
                              {mlp_projections, mlp_norms, mlp_losses, mlp_evaluation});
}

TEST_CASE("U-Nets train as in PyTorch, with a label for each pixel", "[train][networks]") {
  using namespace fixture;
  follows<sk::models::UNet<3, 8>, sk::Shape<16, 8, 2>>(sk::optim::Sgd{.lr = 0.1f, .momentum = 0.9}, 4,
                                                       {unet_projections, unet_norms, unet_losses, unet_evaluation});
  follows<sk::models::UNet<3, 4, 1, nn::GroupNorm<2>>, sk::Shape<8, 8, 1>>(
      sk::optim::Adam{.lr = 1e-2f}, 3, {unet_groups_projections, unet_groups_norms, unet_groups_losses, unet_groups_evaluation});
}
