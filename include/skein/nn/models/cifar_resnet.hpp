// SPDX-License-Identifier: Apache-2.0
// Residual networks for images of 32 x 32: three stacks of 16, 32 and 64 channels, as He et al., CVPR 2016, train them on
// CIFAR-10: 20, 32, 44, 56 and 110 layers. Blocks are compiled once (Repeat).
#pragma once
#include "../batch_norm.hpp"
#include "../conv2d.hpp"
#include "../global_avg_pool.hpp"
#include "../linear.hpp"
#include "../relu.hpp"
#include "../repeat.hpp"
#include "../residual.hpp"
#include "../sequential.hpp"
#include "../zero_pad2d.hpp"

namespace skein::inline SKEIN_ABI::models {

/// What goes past a block that has more channels than the one before, and half the rows and columns: every second pixel with
/// channels of zeros on both sides (option A of the paper, no parameters), or a 1 x 1 convolution with normalisation (option B).
enum class Shortcut { zero_padded, projection };

namespace detail {
template <int Filters, int K, class... Options> using PlainConv =
    nn::Conv2d<Filters, Kernel<K>, NoBias, WeightInit<nn::Init::kaiming_normal>, Options...>;

// [quote block]
template <int Width, int Step> struct BasicBody : nn::Sequential<PlainConv<Width, 3, Stride<Step>, Padding<1>>, nn::BatchNorm<>,
                                                                 nn::Relu, PlainConv<Width, 3, Padding<1>>, nn::BatchNorm<>> {};
template <int Channels, int Step> struct Projection : nn::Sequential<PlainConv<Channels, 1, Stride<Step>>, nn::BatchNorm<>> {};
template <int Width> struct BasicBlock : nn::Sequential<nn::Residual<BasicBody<Width, 1>>, nn::Relu> {};
// [end]

/// Twice the channels, half the sides.
template <Shortcut How, int Width> struct Halving;
template <int Width> struct Halving<Shortcut::zero_padded, Width>
    : nn::Sequential<
          nn::Residual<BasicBody<Width, 2>, nn::ZeroPad2d<0, Stride<2>, ZeroChannels<Width / 4, Width / 2 - Width / 4>>>,
          nn::Relu> {};
template <int Width> struct Halving<Shortcut::projection, Width>
    : nn::Sequential<nn::Residual<BasicBody<Width, 2>, Projection<Width, 2>>, nn::Relu> {};
}  // namespace detail

/// The CIFAR network of Depth = 6 n + 2 layers, at least 14, for images of any size, usually Shape<32, 32, 3>: `CifarResNet<32>`
/// has 464,154 parameters. With Shortcut::projection 2,752 more.
template <int Depth, Shortcut How = Shortcut::zero_padded, int Classes = 10> struct CifarResNet
    : nn::Sequential<detail::PlainConv<16, 3, Padding<1>>, nn::BatchNorm<>, nn::Relu,
                     nn::Repeat<(Depth - 2) / 6, detail::BasicBlock<16>>, detail::Halving<How, 32>,
                     nn::Repeat<(Depth - 8) / 6, detail::BasicBlock<32>>, detail::Halving<How, 64>,
                     nn::Repeat<(Depth - 8) / 6, detail::BasicBlock<64>>, nn::GlobalAvgPool, nn::Linear<Classes>> {
  static_assert(Depth >= 14 && Depth % 6 == 2, "CifarResNet<Depth>: Depth is 6 n + 2 and at least 14: 20, 32, 44, 56, 110");
  using input = Shape<32, 32, 3>;  ///< of CIFAR-10
};

}  // namespace skein::inline SKEIN_ABI::models
