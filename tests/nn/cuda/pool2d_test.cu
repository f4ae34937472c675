// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/avg_pool2d.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/zero_pad2d.hpp>
#include <skein/ops/cuda/for_each.hpp>
#include <skein/ops/cuda/pool2d.hpp>

#include "support/device_harness.hpp"
#include "support/pool_cases.hpp"

namespace nn = skein::nn;
using skein::Cuda;
using skein::Shape;
using skein::Padding;
using skein::Stride;
using support::agree;
using support::Roundings;

namespace {
template <class L, class In> void agrees(Roundings roundings = Roundings::arithmetic) {
  for (const long batch : {0L, 1L, 3L, 8L}) {
    agree<L, In, float>({.batch = batch, .roundings = roundings});
    agree<L, In, double>({.batch = batch, .roundings = roundings});
  }
  agree<L, In, float>({.batch = 2, .wants_dx = false});
}
}  // namespace

TEST_CASE("max-pooling on Cuda is that of the Cpu, bit for bit", "[cuda]") {
  agrees<nn::MaxPool2d<2>, Shape<6, 8, 5>>(Roundings::exact);
  agrees<nn::MaxPool2d<3, Stride<2>, Padding<1>>, Shape<7, 9, 16>>(Roundings::exact);
  agrees<nn::MaxPool2d<3, Stride<1>>, Shape<7, 6, 3>>(Roundings::exact);
  agrees<nn::MaxPool2d<2, Stride<3>, Padding<1>>, Shape<9, 7, 1>>(Roundings::exact);
  agrees<nn::MaxPool2d<15, Padding<7>, Stride<4>>, Shape<17, 15, 2>>(Roundings::exact);
}
TEST_CASE("averages on Cuda are those of the Cpu", "[cuda]") {
  agrees<nn::AvgPool2d<2>, Shape<6, 7, 3>>();
  agrees<nn::AvgPool2d<3, Stride<2>, Padding<1>>, Shape<7, 8, 17>>();
  agrees<nn::AvgPool2d<3, Stride<1>, Padding<1>>, Shape<5, 4, 2>>();
  agrees<nn::GlobalAvgPool, Shape<5, 4, 6>>();
  agrees<nn::GlobalAvgPool, Shape<1, 1, 3>>();
  agrees<nn::GlobalAvgPool, Shape<7, 7, 33>>();
}
TEST_CASE("zeros around an image on Cuda are those of the Cpu", "[cuda]") {
  agrees<nn::ZeroPad2d<1>, Shape<6, 7, 3>>(Roundings::exact);
  agrees<nn::ZeroPad2d<1, Stride<2>, skein::ZeroChannels<2, 3>>, Shape<5, 4, 5>>(Roundings::exact);
}
TEST_CASE("pooling on Cuda is the same one value at a time and in packs", "[cuda]") {
  for (const bool plain : {false, true}) {
    const skein::cuda::PlainKernels kernels(plain);
    agree<nn::MaxPool2d<3, Stride<2>, Padding<1>>, Shape<7, 9, 12>, float>({.batch = 3, .roundings = Roundings::exact});
    agree<nn::AvgPool2d<3, Stride<2>, Padding<1>>, Shape<7, 8, 20>, float>({.batch = 3});
    agree<nn::GlobalAvgPool, Shape<5, 4, 20>, float>({.batch = 3});
    agree<nn::GlobalAvgPool, Shape<5, 4, 6>, double>({.batch = 3});
    support::check_max_pool_choice<Cuda>();
  }
}
TEST_CASE("max-pooling on Cuda: the first of equal values gets the gradient, a NaN wins", "[cuda]") {
  support::check_max_pool_choice<Cuda>();
}
