// expect: ParameterServer: servers update by each rank's gradients as they come, in an order of their own, so that nobody has the norm of a whole gradient (ClipNorm): take Staleness<0>
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/spawn.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Linear<1>, sk::Shape<1>>;
#ifdef SKEIN_TWIN
using Optimizer = sk::optim::Sgd;
#else
using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::ClipNorm>;
#endif
using Policy = decltype(sk::parallel::ParameterServer{std::declval<sk::ThreadComm&>()});
constexpr auto size = sizeof(sk::train::TrainStep<Model, sk::nn::Mse, Optimizer, Policy>);
