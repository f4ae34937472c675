// expect: Compose: Sharded, Reproducible, GradientWorkers and ParameterServer fix what every rank has after each step, and a Pipeline makes steps of its own, so that they go with no other policy
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/gradient_workers.hpp>

namespace sk = skein;
using namespace skein::parallel;

void f(sk::ThreadComm& world) {
#ifndef SKEIN_TWIN
  const Compose policy{DataParallel{world, GradientWorkers<OneRank>{}}, ModelAverage{world, Period<4>{}}};
#else
  const DataParallel policy{world, GradientWorkers<OneRank>{}};
#endif
  (void)policy.bind(Replica<float, sk::Cpu>{});
}
