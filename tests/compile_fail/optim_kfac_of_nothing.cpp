// expect: Kfac: no layer of this network has Kronecker factors
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Layer = sk::nn::Conv2d<4, sk::Kernel<3>>;
#else
using Layer = sk::nn::Conv2d<4, sk::Kernel<3>, sk::Groups<2>>;
#endif
using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Kfac>;
using Model = sk::Model<sk::nn::Sequential<Layer, sk::nn::Relu>, sk::Shape<8, 8, 2>>;
static_assert((sk::train::assert_step<Model, Optimizer, sk::parallel::PolicyState>(), true));
