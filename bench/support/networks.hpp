// SPDX-License-Identifier: Apache-2.0
// The networks that are measured, each with the words in which bench/peer/training.py builds the same.
#pragma once
#include <skein/skein.hpp>

namespace bench {
namespace sk = skein;
namespace nn = skein::nn;

struct LeNet : nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>,
                              nn::Conv2d<16, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu,
                              nn::Linear<84>, nn::Relu, nn::Linear<10>> {
  using input = sk::Shape<28, 28, 1>;
  static constexpr const char* words =
      "28,28,1 conv:6:5:1:2 relu pool:2 conv:16:5:1:0 relu pool:2 flatten linear:120 relu linear:84 relu linear:10";
};
/// The tutorial's regression.
struct FunctionFit : nn::Sequential<nn::Linear<80>, nn::Relu, nn::Linear<80>, nn::Relu, nn::Linear<40>, nn::Relu, nn::Linear<1>> {
  using input = sk::Shape<1>;
  static constexpr const char* words = "1 linear:80 relu linear:80 relu linear:40 relu linear:1";
};
struct Mlp : nn::Sequential<nn::Linear<512>, nn::Relu, nn::Linear<512>, nn::Relu, nn::Linear<10>> {
  using input = sk::Shape<784>;
  static constexpr const char* words = "784 linear:512 relu linear:512 relu linear:10";
};

/// An image of digits row by row.
struct LstmRows : nn::Sequential<nn::Lstm<128, sk::LastState>, nn::Linear<10>> {
  using input = sk::Shape<28, 28>;
  static constexpr const char* words = "28,28 lstm:128 linear:10";
  static constexpr long input_flops = 28 * 2L * 28 * 512;  // of the rows; the product with the state has a gradient in every step
};

/// For CIFAR-10, shortcuts without parameters.
template <int Depth> struct CifarResNet : sk::models::CifarResNet<Depth> {
  static_assert(Depth == 20 || Depth == 32);
  static constexpr const char* words = Depth == 20 ? "32,32,3 cifar_resnet:20 linear:10" : "32,32,3 cifar_resnet:32 linear:10";
};

// ---- not LeNet: what no kernel was written for by name
struct OddWidths : nn::Sequential<nn::Conv2d<7, sk::Kernel<3>, sk::Padding<1>>, nn::Relu, nn::MaxPool2d<2>,
                                  nn::Conv2d<19, sk::Kernel<3>, sk::Padding<1>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten,
                                  nn::Linear<75>, nn::Relu, nn::Linear<11>> {
  using input = sk::Shape<27, 27, 1>;
  static constexpr const char* words =
      "27,27,1 conv:7:3:1:1 relu pool:2 conv:19:3:1:1 relu pool:2 flatten linear:75 relu linear:11";
};
struct Strided : nn::Sequential<nn::Conv2d<12, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::Relu,
                                nn::Conv2d<24, sk::Kernel<3>, sk::Stride<2>, sk::Padding<1>>, nn::Relu,
                                nn::Conv2d<32, sk::Kernel<3>>, nn::Relu, nn::Flatten, nn::Linear<10>> {
  using input = sk::Shape<32, 32, 3>;
  static constexpr const char* words = "32,32,3 conv:12:3:2:1 relu conv:24:3:2:1 relu conv:32:3:1:0 relu flatten linear:10";
};
struct FiveChannels
    : nn::Sequential<nn::Conv2d<10, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<3>, nn::Conv2d<20, sk::Kernel<3>>, nn::Relu,
                     nn::MaxPool2d<3, sk::Stride<2>>, nn::Flatten, nn::Linear<33>, nn::Relu, nn::Linear<5>> {
  using input = sk::Shape<31, 31, 5>;
  static constexpr const char* words =
      "31,31,5 conv:10:5:1:0 relu pool:3 conv:20:3:1:0 relu pool:3:2 flatten linear:33 relu linear:5";
};

template <class Network> using ModelOf = sk::Model<Network, typename Network::input>;

/// Flops of a step on `batch` samples: backward costs twice forward, but the first layer's input needs no gradient. Of that
/// layer's flops a network may say which are the input's.
template <class Network> double step_flops(long batch) {
  using M = ModelOf<Network>;
  long input = M::program.layers()[0].flops;
  if constexpr (requires { Network::input_flops; }) input = Network::input_flops;
  return static_cast<double>(batch) * static_cast<double>(3 * M::flops - input);
}

}  // namespace bench
