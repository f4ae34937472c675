// SPDX-License-Identifier: Apache-2.0
// A small U-Net for segmentation, a class for each pixel: Ronneberger, Fischer, Brox, MICCAI 2015, with the usual changes of
// today: convolutions keep the size of the image, and each has a normalisation behind it. Every level is a Graph, whose skip goes
// past the level below. Not included by skein/skein.hpp.
#pragma once
#include "../batch_norm.hpp"
#include "../conv2d.hpp"
#include "../conv_transpose2d.hpp"
#include "../graph.hpp"
#include "../max_pool2d.hpp"
#include "../relu.hpp"
#include "../sequential.hpp"

namespace skein::inline SKEIN_ABI::models {

namespace detail {
struct unet_image;
struct unet_skip;
struct unet_below;
struct unet_both;
struct unet_out;

template <int Width, class Norm> struct UNetConvs
    : nn::Sequential<nn::Conv2d<Width, Kernel<3>, Padding<1>, NoBias>, Norm, nn::Relu,
                     nn::Conv2d<Width, Kernel<3>, Padding<1>, NoBias>, Norm, nn::Relu> {};

// [quote unet_level]
/// Two convolutions; half the sides, the level below, and twice the sides again; two convolutions over both.
template <int Width, int Levels, class Norm> struct UNetLevel
    : nn::Graph<nn::Input<unet_image>, nn::Apply<UNetConvs<Width, Norm>, nn::From<unet_image>, nn::To<unet_skip>>,
                nn::Apply<nn::Sequential<nn::MaxPool2d<2>, UNetLevel<2 * Width, Levels - 1, Norm>,
                                         nn::ConvTranspose2d<Width, Kernel<2>, Stride<2>>>,
                          nn::From<unet_skip>, nn::To<unet_below>>,
                nn::Apply<nn::Concatenate, nn::From<unet_skip, unet_below>, nn::To<unet_both>>,
                nn::Apply<UNetConvs<Width, Norm>, nn::From<unet_both>, nn::To<unet_out>>, nn::Output<unet_out>> {};
template <int Width, class Norm> struct UNetLevel<Width, 0, Norm> : UNetConvs<Width, Norm> {};
// [end]
}  // namespace detail

/// An image (h, w, c) becomes (h, w, Classes), the logits of each pixel; a sample has h w labels. h and w are multiples of
/// 2^Levels, else the Graph refuses its Concatenate. The first level has Width channels, each below twice as many; `UNet<2>` for
/// one channel has 117,090 parameters. Norm: what stands behind each convolution, such as GroupNorm<8> for small batches.
template <int Classes, int Width = 16, int Levels = 2, class Norm = nn::BatchNorm<>> struct UNet
    : nn::Sequential<detail::UNetLevel<Width, Levels, Norm>, nn::Conv2d<Classes, Kernel<1>>> {
  static_assert(Levels >= 0, "UNet<Classes, Width, Levels>: the number of times that the sides are halved");
  using input = Shape<32, 32, 1>;
};

}  // namespace skein::inline SKEIN_ABI::models
