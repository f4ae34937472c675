// expect: EachPosition<L> takes one layer of flat samples whose backward comes in halves, such as Linear<N>: put it around each such layer of a Sequential
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/each_position.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
namespace nn = skein::nn;

#ifdef SKEIN_TWIN
struct Net : nn::Sequential<nn::EachPosition<nn::Linear<4>>, nn::Relu> {};
#else
struct Net : nn::EachPosition<nn::Sequential<nn::Linear<4>, nn::Relu>> {};
#endif

int main() { return skein::Model<Net, skein::Shape<2, 3>>::parameter_count > 0 ? 0 : 1; }
