// expect: Kfac runs on one rank so far: take the Trainer without this policy, or leave Kfac out of the chain
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Kfac>;
#ifdef SKEIN_TWIN
using State = sk::parallel::PolicyState;
#else
using State = decltype(std::declval<sk::parallel::DataParallel<sk::ThreadComm>>().bind(sk::parallel::Replica<float, sk::Cpu>{}));
#endif
static_assert((sk::train::assert_step<sk::Model<sk::nn::Linear<3>, sk::Shape<2>>, Optimizer, State>(), true));
