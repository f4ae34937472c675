// SPDX-License-Identifier: Apache-2.0
// VGG networks of 11, 13, 16 and 19 layers (Simonyan and Zisserman, ICLR 2015): five stacks of 3 x 3 convolutions with
// max-pooling behind each, and three Linear layers with dropout.
#pragma once
#include "../conv2d.hpp"
#include "../dropout.hpp"
#include "../flatten.hpp"
#include "../linear.hpp"
#include "../max_pool2d.hpp"
#include "../relu.hpp"
#include "../repeat.hpp"
#include "../sequential.hpp"

namespace skein::inline SKEIN_ABI::models {

namespace detail {
/// Convolutions of the five stacks.
struct VggSizes {
  int convolutions[5];
};
constexpr VggSizes vgg_sizes(int depth) {
  switch (depth) {
    case 11:
      return {{1, 1, 2, 2, 2}};
    case 13:
      return {{2, 2, 2, 2, 2}};
    case 16:
      return {{2, 2, 3, 3, 3}};
    case 19:
      return {{2, 2, 4, 4, 4}};
    default:
      return {};
  }
}
template <int Filters> using VggConv = nn::Conv2d<Filters, Kernel<3>, Padding<1>, WeightInit<nn::Init::kaiming_normal>>;
template <int Filters> struct VggUnit : nn::Sequential<VggConv<Filters>, nn::Relu> {};
template <int N, int Filters> struct VggStack
    : nn::Sequential<VggUnit<Filters>, nn::Repeat<N - 1, VggUnit<Filters>>, nn::MaxPool2d<2>> {};
template <int Filters> struct VggStack<1, Filters> : nn::Sequential<VggUnit<Filters>, nn::MaxPool2d<2>> {};
template <int Depth, int Which, int Filters> using VggStackOf = VggStack<vgg_sizes(Depth).convolutions[Which], Filters>;
}  // namespace detail

/// The network of Depth 11, 13, 16 or 19 for images of at least 32 x 32, usually Shape<224, 224, 3>; Hidden: the width of the two
/// Linear layers before the last. `Vgg<16>` has 138,357,544 parameters at 224 x 224.
template <int Depth, int Classes = 1000, int Hidden = 4096> struct Vgg
    : nn::Sequential<detail::VggStackOf<Depth, 0, 64>, detail::VggStackOf<Depth, 1, 128>, detail::VggStackOf<Depth, 2, 256>,
                     detail::VggStackOf<Depth, 3, 512>, detail::VggStackOf<Depth, 4, 512>, nn::Flatten, nn::Linear<Hidden>,
                     nn::Relu, nn::Dropout<Rate<1, 2>>, nn::Linear<Hidden>, nn::Relu, nn::Dropout<Rate<1, 2>>,
                     nn::Linear<Classes>> {
  static_assert(detail::vgg_sizes(Depth).convolutions[0] > 0, "Vgg<Depth>: Depth is 11, 13, 16 or 19");
  using input = Shape<224, 224, 3>;  ///< of ImageNet
};

}  // namespace skein::inline SKEIN_ABI::models
