// expect: Kfac needs ranks that all make the same steps, each with a batch of its own: take DataParallel without
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/train/step/check_step.hpp>

namespace sk = skein;

using Optimizer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Kfac>;
#ifdef SKEIN_TWIN
using Policy = sk::parallel::DataParallel<sk::ThreadComm>;
#else
using Policy = sk::parallel::DataParallel<sk::ThreadComm, sk::parallel::Reproducible<8>>;
#endif
using State = decltype(std::declval<Policy>().bind(sk::parallel::Replica<float, sk::Cpu>{}));
static_assert((sk::train::assert_step<sk::Model<sk::nn::Linear<3>, sk::Shape<2>>, Optimizer, State>(), true));
