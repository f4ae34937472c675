// SPDX-License-Identifier: Apache-2.0
// Pre-activation residual networks of 50, 101 and 152 layers: He et al., ECCV 2016, with the layout that Keras gives them:
// normalisation and ReLU before the convolutions, stem, projection and last convolution of a block with bias, the stride in the
// last block of a stack, whose shortcut is every second pixel.
#pragma once
#include "resnet.hpp"

namespace skein::inline SKEIN_ABI::models {

namespace detail {
using V2Norm = nn::BatchNorm<Epsilon<1001, 100000000>, Momentum<1, 100>>;

template <int Width, int Step> struct V2Body : nn::Sequential<nn::Conv2d<Width, Kernel<1>, NoBias>, V2Norm, nn::Relu,
                                                              nn::Conv2d<Width, Kernel<3>, Stride<Step>, Padding<1>, NoBias>,
                                                              V2Norm, nn::Relu, nn::Conv2d<4 * Width, Kernel<1>>> {};
/// The first block of a stack: the shortcut, too, begins behind normalisation and ReLU.
template <int Width> struct V2First
    : nn::Sequential<V2Norm, nn::Relu, nn::Residual<V2Body<Width, 1>, nn::Conv2d<4 * Width, Kernel<1>>>> {};
template <int Width, int Step> struct V2Inner : nn::Sequential<V2Norm, nn::Relu, V2Body<Width, Step>> {};
template <int Width> struct V2Block : nn::Residual<V2Inner<Width, 1>> {};
template <int Width> struct V2Last : nn::Residual<V2Inner<Width, 2>, nn::ZeroPad2d<0, Stride<2>>> {};

template <int N, int Width> struct V2Stack : nn::Sequential<V2First<Width>, nn::Repeat<N - 2, V2Block<Width>>, V2Last<Width>> {};
}  // namespace detail

/// The pre-activation network of Depth 50, 101 or 152 for images, usually Shape<224, 224, 3>; `ResNetV2<50>` has 25,568,360
/// parameters. The pooling behind the stem sees zeros around the image, which matters since its values may be negative.
template <int Depth, int Classes = 1000> struct ResNetV2
    : nn::Sequential<nn::Conv2d<64, Kernel<7>, Stride<2>, Padding<3>>, nn::ZeroPad2d<1>, nn::MaxPool2d<3, Stride<2>>,
                     detail::V2Stack<detail::stack_sizes(Depth).blocks[0], 64>,
                     detail::V2Stack<detail::stack_sizes(Depth).blocks[1], 128>,
                     detail::V2Stack<detail::stack_sizes(Depth).blocks[2], 256>,
                     nn::Sequential<detail::V2First<512>, nn::Repeat<2, detail::V2Block<512>>>, detail::V2Norm, nn::Relu,
                     nn::GlobalAvgPool, nn::Linear<Classes>> {
  static_assert(Depth == 50 || Depth == 101 || Depth == 152, "ResNetV2<Depth>: Depth is 50, 101 or 152");
  using input = Shape<224, 224, 3>;  ///< of ImageNet
};

}  // namespace skein::inline SKEIN_ABI::models
