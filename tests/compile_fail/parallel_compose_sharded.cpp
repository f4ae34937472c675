// expect: Compose: Sharded, Reproducible, GradientWorkers and ParameterServer fix what every rank has after each step, and a Pipeline makes steps of its own, so that they go with no other policy
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/sharded.hpp>

namespace sk = skein;

int main() {
  sk::SelfComm world;
  const sk::parallel::Replica<float, sk::Cpu> replica;
#ifndef SKEIN_TWIN
  const sk::parallel::Compose policy{sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}},
                                     sk::parallel::ModelAverage{world, sk::parallel::Period<4>{}}};
#else
  const sk::parallel::Compose policy{sk::parallel::DataParallel{world},
                                     sk::parallel::ModelAverage{world, sk::parallel::Period<4>{}}};
#endif
  (void)policy.bind(replica);
}
