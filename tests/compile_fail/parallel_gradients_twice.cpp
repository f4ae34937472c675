// expect: Compose: two of the policies exchange gradients, so they would be added up twice: keep one DataParallel
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/average/model_average.hpp>

namespace sk = skein;

int main() {
  sk::SelfComm world;
  const sk::parallel::Replica<float, sk::Cpu> replica;
#ifndef SKEIN_TWIN
  const sk::parallel::Compose policy{sk::parallel::DataParallel{world}, sk::parallel::DataParallel{world}};
#else
  const sk::parallel::Compose policy{sk::parallel::DataParallel{world},
                                     sk::parallel::ModelAverage{world, sk::parallel::Period<4>{}}};
#endif
  (void)policy.bind(replica);
}
