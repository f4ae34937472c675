// SPDX-License-Identifier: Apache-2.0
// The networks of nn/models: parameter counts are the published ones; CIFAR's ResNet-20 with both shortcuts and ResNet-56, the
// pre-activation forms of ResNet-50 and 152 agree with PyTorch's on the same weights. The others: deep_models_test.cpp.
#include <catch2/catch.hpp>

#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/models/resnet.hpp>
#include <skein/nn/models/resnet_v2.hpp>
#include <skein/nn/models/vgg.hpp>

#include "../fixtures/models.hpp"
#include "../support/agrees_with_pytorch.hpp"

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

}  // namespace

TEST_CASE("ResNet-20 and 56 for CIFAR agree with PyTorch's", "[train][models]") {
  using namespace fixture;
  using Images = sk::Shape<32, 32, 3>;
  const support::Expected a{resnet20_a_projections, resnet20_a_norms, resnet20_a_losses, resnet20_a_evaluation};
  support::agrees<CifarResNet<20>, Images>(a, resnet20_a_logits);
  support::agrees<CifarResNet<20>, Images>(a, resnet20_a_logits, {.threads = 2});
  support::agrees<CifarResNet<20>, Images, float>(a, resnet20_a_logits);
  support::agrees<CifarResNet<20, Shortcut::projection>, sk::Shape<20, 28, 3>>(
      {resnet20_b_projections, resnet20_b_norms, resnet20_b_losses, resnet20_b_evaluation}, resnet20_b_logits);
  support::agrees<CifarResNet<56>, Images>(
      {resnet56_a_projections, resnet56_a_norms, resnet56_a_losses, resnet56_a_evaluation, 8}, resnet56_a_logits);
}
TEST_CASE("ResNet-50 V2, as Keras builds it, agrees with PyTorch's twin", "[train][models]") {
  using namespace fixture;
  support::agrees<ResNetV2<50, 10>, sk::Shape<48, 40, 3>>(
      {resnet50_v2_projections, resnet50_v2_norms, resnet50_v2_losses, resnet50_v2_evaluation}, resnet50_v2_logits,
      {.rate = 0.001f});
}
TEST_CASE("ResNet-152 V2, as Keras builds it, agrees with PyTorch's twin", "[train][models]") {
  using namespace fixture;
  support::agrees<ResNetV2<152, 10>, sk::Shape<48, 40, 3>>(
      {resnet152_v2_projections, resnet152_v2_norms, resnet152_v2_losses, resnet152_v2_evaluation, 8}, resnet152_v2_logits,
      {.rate = 0.001f});
}
