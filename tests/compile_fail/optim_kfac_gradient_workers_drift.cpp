// expect: GradientWorkers: a layer's workers precondition the gradient of all ranks, and under SyncEvery each rank takes
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/gradient_workers.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Kfac>;
#ifdef SKEIN_TWIN
using Policy = sk::parallel::DataParallel<sk::ThreadComm, sk::parallel::SyncEvery<2>>;
#else
using Policy =
    sk::parallel::DataParallel<sk::ThreadComm, sk::parallel::SyncEvery<2>, sk::parallel::GradientWorkers<sk::parallel::OneRank>>;
#endif
using State = decltype(std::declval<Policy>().bind(sk::parallel::Replica<float, sk::Cpu>{}));
static_assert((sk::train::assert_step<sk::Model<sk::nn::Linear<3>, sk::Shape<2>>, Optimizer, State>(), true));
