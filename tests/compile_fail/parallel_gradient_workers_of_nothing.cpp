// expect: GradientWorkers says which ranks keep the inverses of Kfac, and there is no Kfac in this optimizer's chain: leave
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/gradient_workers.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Policy = sk::parallel::DataParallel<sk::ThreadComm>;
#else
using Policy = sk::parallel::DataParallel<sk::ThreadComm, sk::parallel::GradientWorkers<sk::parallel::OneRank>>;
#endif
using State = decltype(std::declval<Policy>().bind(sk::parallel::Replica<float, sk::Cpu>{}));
static_assert((sk::train::assert_step<sk::Model<sk::nn::Linear<3>, sk::Shape<2>>, sk::optim::Sgd, State>(), true));
