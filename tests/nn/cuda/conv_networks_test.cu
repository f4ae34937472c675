// SPDX-License-Identifier: Apache-2.0
// Whole convolutional networks trained on both devices: launched, and replayed from a captured step.
#include "train/cuda/step_twins.hpp"

#include <skein/nn/models/unet.hpp>

namespace nn = skein::nn;
using skein::Kernel;
using skein::NoBias;
using skein::Padding;
using skein::Shape;
using skein::Stride;

namespace {
using LeNet = nn::Sequential<nn::Conv2d<4, Kernel<5>, Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<8, Kernel<3>>, nn::Relu,
                             nn::MaxPool2d<2>, nn::Flatten, nn::Linear<20>, nn::Relu, nn::Linear<10>>;

template <int Filters, int Step> using Body =
    nn::Sequential<nn::Conv2d<Filters, Kernel<3>, Stride<Step>, Padding<1>, NoBias>, nn::BatchNorm<>, nn::Relu,
                   nn::Conv2d<Filters, Kernel<3>, Padding<1>, NoBias>, nn::BatchNorm<>>;
using ResNet =
    nn::Sequential<nn::Conv2d<6, Kernel<3>, Padding<1>, NoBias>, nn::BatchNorm<>, nn::Relu, nn::Residual<Body<6, 1>>, nn::Relu,
                   nn::Residual<Body<9, 2>, nn::Sequential<nn::Conv2d<9, Kernel<1>, Stride<2>, NoBias>, nn::BatchNorm<>>>,
                   nn::Relu, nn::AvgPool2d<2>, nn::GlobalAvgPool, nn::Linear<10>, nn::LogSoftmax>;
/// (8, 8, 2) to (8, 8, 3): what UNet has not.
using Pixels = nn::Sequential<nn::Conv2d<6, Kernel<3>, Stride<2>, Padding<1>>, nn::GroupNorm<3>, nn::Relu,
                              nn::Conv2d<6, Kernel<3>, Padding<1>, skein::Groups<6>>, nn::Upsample<2, skein::Bilinear>,
                              nn::RmsNorm<>, nn::Reshape<64, 6>, nn::Conv1d<6, Kernel<3>, Padding<1>>, nn::Reshape<4, 4, 4, 6>,
                              nn::Conv3d<3, Kernel<3>, Padding<1>>, nn::Reshape<8, 8, 3>>;
}  // namespace

TEST_CASE("networks with a class for each pixel train alike on both devices", "[cuda]") {
  twins::agree<Pixels, Shape<8, 8, 2>, double>(nn::CrossEntropy{}, skein::optim::Sgd{.lr = 0.05, .momentum = 0.9}, {}, 1e-10);
  twins::agree<skein::models::UNet<3, 4, 1>, Shape<8, 8, 2>, double>(nn::CrossEntropy{},
                                                                     skein::optim::Sgd{.lr = 0.05, .momentum = 0.9}, {}, 1e-10);
}
TEST_CASE("LeNet trains alike on both devices", "[cuda]") {
  twins::agree<LeNet, Shape<12, 12, 1>>(nn::CrossEntropy{}, skein::optim::Sgd{.lr = 0.05, .momentum = 0.9});
}
TEST_CASE("a residual network with batch normalisation trains alike on both devices", "[cuda]") {
  twins::agree<ResNet, Shape<10, 10, 3>>(nn::Nll{}, skein::optim::Sgd{.lr = 0.05, .momentum = 0.9}, {}, 2e-3);
  twins::agree<ResNet, Shape<10, 10, 3>, double>(nn::Nll{}, skein::optim::Sgd{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3},
                                                 {}, 1e-10);
}
TEST_CASE("the summary of an executor on Cuda names what the libraries chose, and their detours", "[cuda]") {
  skein::Model<LeNet, Shape<12, 12, 9>, skein::Cuda> model;
  skein::Executor executor{model, nn::CrossEntropy{}, {.capacity = 23}};
  CHECK(skein::summary(executor).find("cuDNN's convolution of 23") == std::string::npos);
  executor.prepare(23);
  const std::string text = skein::summary(executor);
  CHECK_THAT(text, Catch::Contains("\n  cuDNN's convolution of 23 x 12 x 12 x 9 to 12 x 12 x 4, kernel 5") &&
                       Catch::Contains(", gradient of the filters: algorithm ") && Catch::Contains(" KiB of workspace\n") &&
                       Catch::Contains("own kernels of few channels"));
  skein::cuda::choices().detour("a test's detour");
  CHECK_THAT(skein::summary(executor), Catch::Contains("\n  detour: a test's detour\n"));
}
TEST_CASE("what runs a network on Cuda: fused where it is said", "[cuda]") {
  using Fused = nn::Fused<nn::Sequential<nn::Conv2d<4, Kernel<3>, NoBias>, nn::BatchNorm<>, nn::Relu, nn::Conv2d<4, Kernel<1>>,
                                         nn::Relu, nn::MaxPool2d<2>>,
                          skein::Cuda>;
  using Norm = nn::OnDevice<nn::RectifiedBatchNorm<nn::BatchNorm<>>, skein::Cuda>;
  using First = nn::OnDevice<nn::DeviceConv2d<nn::Conv2d<4, Kernel<3>, NoBias>, false>, skein::Cuda>;
  using Second = nn::OnDevice<nn::DeviceConv2d<nn::Conv2d<4, Kernel<1>>, true>, skein::Cuda>;
  STATIC_REQUIRE(
      std::is_same_v<Fused, nn::Sequential<nn::FusedLayer<First, nn::Conv2d<4, Kernel<3>, NoBias>>,
                                           nn::FusedLayer<Norm, nn::BatchNorm<>, nn::Relu>,
                                           nn::FusedLayer<Second, nn::Conv2d<4, Kernel<1>>, nn::Relu>, nn::MaxPool2d<2>>>);
}
