// expect: an outer optimizer of ModelAverage is one pass over a fragment: its chain takes elementwise transforms alone
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/parallel/average/model_average.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Outer = sk::optim::Chain<sk::optim::Sgd>;
#else
using Outer = sk::optim::Chain<sk::optim::Sgd, sk::optim::Lars>;
#endif
using Policy = sk::parallel::ModelAverage<sk::ThreadComm, sk::parallel::Period<2>, Outer>;
void start(const Policy& policy) { (void)policy.bind(sk::parallel::Replica<float, sk::Cpu>{}); }
