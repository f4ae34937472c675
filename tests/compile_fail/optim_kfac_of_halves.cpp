// expect: Kfac: layers on activations of 16 bits do not hand over their factors; take a Model without mixed precision
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Model = sk::Model<sk::nn::Linear<3>, sk::Shape<2>>;
#else
using Model = sk::Model<sk::nn::Linear<3>, sk::Shape<2>, sk::Cpu, sk::Precision<sk::bf16>>;
#endif
using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Kfac>;
static_assert((sk::train::assert_step<Model, Optimizer, sk::parallel::PolicyState>(), true));
