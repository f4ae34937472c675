// SPDX-License-Identifier: Apache-2.0
// Residual networks for ImageNet: 18, 34, 50, 101 and 152 layers. He et al., CVPR 2016; as torchvision has them: where a stack
// begins, the stride is in the 3 x 3 convolution, and the shortcut is a projection.
#pragma once
#include "../max_pool2d.hpp"
#include "cifar_resnet.hpp"

namespace skein::inline SKEIN_ABI::models {

namespace detail {
/// Blocks of the four stacks, and whether a block has three convolutions.
struct StackSizes {
  int blocks[4];
  bool bottleneck;
};
constexpr StackSizes stack_sizes(int depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, false};
    case 34:
      return {{3, 4, 6, 3}, false};
    case 50:
      return {{3, 4, 6, 3}, true};
    case 101:
      return {{3, 4, 23, 3}, true};
    case 152:
      return {{3, 8, 36, 3}, true};
    default:
      return {{0, 0, 0, 0}, true};
  }
}

template <int Width, int Step> struct BottleneckBody
    : nn::Sequential<PlainConv<Width, 1>, nn::BatchNorm<>, nn::Relu, PlainConv<Width, 3, Stride<Step>, Padding<1>>,
                     nn::BatchNorm<>, nn::Relu, PlainConv<4 * Width, 1>, nn::BatchNorm<>> {};
template <int Width> struct BottleneckBlock : nn::Sequential<nn::Residual<BottleneckBody<Width, 1>>, nn::Relu> {};
template <int Width, int Step> struct BottleneckFirst
    : nn::Sequential<nn::Residual<BottleneckBody<Width, Step>, Projection<4 * Width, Step>>, nn::Relu> {};

/// N blocks, the first of which changes the shape.
template <bool Bottleneck, int N, int Width, int Step> struct Stack
    : nn::Sequential<BottleneckFirst<Width, Step>, nn::Repeat<N - 1, BottleneckBlock<Width>>> {};
template <int N, int Width, int Step> struct Stack<false, N, Width, Step>
    : nn::Sequential<Halving<Shortcut::projection, Width>, nn::Repeat<N - 1, BasicBlock<Width>>> {};
template <int N, int Width> struct Stack<false, N, Width, 1> : nn::Sequential<nn::Repeat<N, BasicBlock<Width>>> {};

template <int Depth, int Which, int Width, int Step> using StackOf =
    Stack<stack_sizes(Depth).bottleneck, stack_sizes(Depth).blocks[Which], Width, Step>;
}  // namespace detail

/// The network of Depth 18, 34, 50, 101 or 152 for images, usually Shape<224, 224, 3>; `ResNet<50>` has 25,557,032 parameters.
template <int Depth, int Classes = 1000> struct ResNet
    : nn::Sequential<detail::PlainConv<64, 7, Stride<2>, Padding<3>>, nn::BatchNorm<>, nn::Relu,
                     nn::MaxPool2d<3, Stride<2>, Padding<1>>, detail::StackOf<Depth, 0, 64, 1>, detail::StackOf<Depth, 1, 128, 2>,
                     detail::StackOf<Depth, 2, 256, 2>, detail::StackOf<Depth, 3, 512, 2>, nn::GlobalAvgPool,
                     nn::Linear<Classes>> {
  static_assert(detail::stack_sizes(Depth).blocks[0] > 0, "ResNet<Depth>: Depth is 18, 34, 50, 101 or 152");
  using input = Shape<224, 224, 3>;  ///< of ImageNet
};

}  // namespace skein::inline SKEIN_ABI::models
