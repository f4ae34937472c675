// SPDX-License-Identifier: Apache-2.0
// ResNet-18, 34, 50, 101 and 152, VGG-11 and 16 agree with PyTorch's on the same weights. Depths of one family share their
// compiled blocks.
#include <catch2/catch.hpp>

#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/models/resnet.hpp>
#include <skein/nn/models/vgg.hpp>

#include "../fixtures/models.hpp"
#include "../support/agrees_with_pytorch.hpp"

namespace sk = skein;
namespace models = skein::models;
namespace fixture = fixtures::models;

namespace {
using Images = sk::Shape<48, 40, 3>;
using Small = sk::Shape<32, 32, 3>;
}  // namespace

TEST_CASE("ResNet-18 and 34 agree with PyTorch's", "[train][models]") {
  using namespace fixture;
  support::agrees<models::ResNet<18, 10>, Images>({resnet18_projections, resnet18_norms, resnet18_losses, resnet18_evaluation, 8},
                                                  resnet18_logits, {.rate = 0.001f});
  support::agrees<models::ResNet<34, 10>, Images>({resnet34_projections, resnet34_norms, resnet34_losses, resnet34_evaluation, 8},
                                                  resnet34_logits, {.rate = 0.001f});
}
TEST_CASE("ResNet-50 and 101 agree with PyTorch's", "[train][models]") {
  using namespace fixture;
  support::agrees<models::ResNet<50, 10>, Images>({resnet50_projections, resnet50_norms, resnet50_losses, resnet50_evaluation},
                                                  resnet50_logits, {.rate = 0.001f});
  support::agrees<models::ResNet<101, 10>, Images>(
      {resnet101_projections, resnet101_norms, resnet101_losses, resnet101_evaluation, 8}, resnet101_logits, {.rate = 0.001f});
}
TEST_CASE("ResNet-152 agrees with PyTorch's", "[train][models]") {
  using namespace fixture;
  support::agrees<models::ResNet<152, 10>, Images>(
      {resnet152_projections, resnet152_norms, resnet152_losses, resnet152_evaluation, 8}, resnet152_logits, {.rate = 0.001f});
}
TEST_CASE("VGG-11 and 16 agree with PyTorch's", "[train][models]") {
  using namespace fixture;
  support::agrees<models::Vgg<11, 10, 32>, Small>({vgg11_projections, vgg11_norms, vgg11_losses, vgg11_evaluation}, vgg11_logits);
  support::agrees<models::Vgg<16, 10, 32>, Small>({vgg16_projections, vgg16_norms, vgg16_losses, vgg16_evaluation}, vgg16_logits);
}
