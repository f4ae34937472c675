// expect: a network with Stateful layers is trained by a loop by hand, Executor and BoundOptimizer, that gives it the sequences in their order: fit shuffles them, and validates in between
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Rows = nn::Lstm<4, sk::LastState>;
#else
using Rows = nn::Lstm<4, sk::LastState, sk::Stateful>;
#endif
using Model = sk::Model<nn::Sequential<Rows, nn::Linear<2>>, sk::Shape<3, 2>>;

static_assert(sizeof(sk::train::TrainStep<Model, nn::Mse, sk::optim::Sgd>) > 0);
