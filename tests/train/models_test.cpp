// SPDX-License-Identifier: Apache-2.0
// The networks of nn/models: parameter counts are the published ones; ResNet-20 with both shortcuts, ResNet-50 and its
// pre-activation form agree with PyTorch's on the same weights: logits, loss, every gradient of a step (by its product with a
// fixed vector, and its norm), and the loss in evaluation phase behind a step, which reads the running statistics.
#include <catch2/catch.hpp>

#include <cmath>
#include <type_traits>
#include <vector>

#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/models/resnet.hpp>
#include <skein/nn/models/resnet_v2.hpp>
#include <skein/nn/models/vgg.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

#include "../fixtures/models.hpp"
#include "../support/pytorch_network.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace models = skein::models;
namespace fixture = fixtures::models;
using models::CifarResNet;
using models::ResNet;
using models::ResNetV2;
using models::Shortcut;
using models::Vgg;

namespace {

template <class Network> constexpr long parameters = nn::analyze<Network>(Network::input::extents).parameters;
static_assert(parameters<CifarResNet<20>> == 269'722 && parameters<CifarResNet<20, Shortcut::projection>> == 272'474);
static_assert(parameters<CifarResNet<32>> == 464'154 && parameters<CifarResNet<44>> == 658'586);
static_assert(parameters<CifarResNet<56>> == 853'018 && parameters<CifarResNet<110>> == 1'727'962);
static_assert(parameters<ResNet<18>> == 11'689'512 && parameters<ResNet<34>> == 21'797'672);
static_assert(parameters<ResNet<50>> == 25'557'032 && parameters<ResNet<101>> == 44'549'160);
static_assert(parameters<ResNet<152>> == 60'192'808);
static_assert(parameters<ResNetV2<50>> == 25'568'360 && parameters<ResNetV2<101>> == 44'577'896);
static_assert(parameters<ResNetV2<152>> == 60'236'904);
static_assert(parameters<ResNetV2<50, 10>> == 23'539'850 && parameters<ResNetV2<152, 10>> == 58'208'394);
static_assert(parameters<Vgg<11>> == 132'863'336 && parameters<Vgg<13>> == 133'047'848);
static_assert(parameters<Vgg<16>> == 138'357'544 && parameters<Vgg<19>> == 143'667'240);
static_assert((sk::assert_network<ResNetV2<152>, sk::Shape<32, 32, 3>>(), true));
static_assert((sk::assert_network<Vgg<19>, sk::Shape<32, 32, 3>>(), true));
static_assert((sk::assert_network<CifarResNet<110, Shortcut::projection>, sk::Shape<32, 32, 3>>(), true));

/// A step and an evaluation of three samples. In float a ReLU's input near 0 may change its side: gradients move by 1e-3 then.
template <class Network, class Input, class Scalar = double>
void agrees(const support::Expected& expected, const std::vector<double>& logits, int threads = 1) {
  using Model = sk::Model<Network, Input, sk::Cpu, Scalar>;
  constexpr bool exact = std::is_same_v<Scalar, double>;
  constexpr double values = exact ? 1e-9 : 1e-4, gradients = exact ? 1e-9 : 1e-2, running = exact ? 1e-7 : 1e-3;
  constexpr long count = 3, pitch = sk::sample_pitch(Model::output_extents), classes = Model::output_extents.last();
  INFO((exact ? "double, threads: " : "float, threads: ") << threads);
  Model model;
  support::set_parameters(model);
  const support::Samples<Model> samples(count);
  sk::train::TrainStep train_step{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}, sk::parallel::SingleProcess{}};
  train_step.reserve({.capacity = count, .threads = threads});
  CHECK(support::apart_from(train_step.step(samples.batch()).mean(), expected.losses[0]) <= values);
  REQUIRE(logits.size() == static_cast<std::size_t>(count * classes));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const long at = static_cast<long>(i) / classes * pitch + static_cast<long>(i) % classes;
    CHECK(support::apart_from(static_cast<double>(train_step.executor().outputs()[at]), logits[i], 1) <= values);
  }
  if (threads == 1) support::check_gradients(model, expected, gradients);
  CHECK(support::apart_from(train_step.evaluate(samples.batch()).mean(), expected.evaluation[0]) <= running);
}

}  // namespace

TEST_CASE("ResNet-20 for CIFAR agrees with PyTorch's", "[train][models]") {
  using namespace fixture;
  const support::Expected a{resnet20_a_projections, resnet20_a_norms, resnet20_a_losses, resnet20_a_evaluation};
  agrees<CifarResNet<20>, sk::Shape<32, 32, 3>>(a, resnet20_a_logits);
  agrees<CifarResNet<20>, sk::Shape<32, 32, 3>>(a, resnet20_a_logits, 2);
  agrees<CifarResNet<20>, sk::Shape<32, 32, 3>, float>(a, resnet20_a_logits);
  agrees<CifarResNet<20, Shortcut::projection>, sk::Shape<20, 28, 3>>(
      {resnet20_b_projections, resnet20_b_norms, resnet20_b_losses, resnet20_b_evaluation}, resnet20_b_logits);
}
TEST_CASE("ResNet-50 agrees with PyTorch's", "[train][models]") {
  using namespace fixture;
  agrees<ResNet<50, 10>, sk::Shape<32, 24, 3>>({resnet50_projections, resnet50_norms, resnet50_losses, resnet50_evaluation},
                                               resnet50_logits);
}
TEST_CASE("ResNet-50 V2, as Keras builds it, agrees with PyTorch's twin", "[train][models]") {
  using namespace fixture;
  agrees<ResNetV2<50, 10>, sk::Shape<32, 24, 3>>(
      {resnet50_v2_projections, resnet50_v2_norms, resnet50_v2_losses, resnet50_v2_evaluation}, resnet50_v2_logits);
}
