// expect: SyncEvery<N>: a period is 1 step or more; for gradients that are never exchanged take ModelAverage alone
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_every.hpp>

namespace sk = skein;

int main() {
  sk::SelfComm world;
  const sk::parallel::Replica<float, sk::Cpu> replica;
#ifndef SKEIN_TWIN
  const auto policy = sk::parallel::DataParallel{world, sk::parallel::SyncEvery<0>{}};
#else
  const auto policy = sk::parallel::DataParallel{world, sk::parallel::SyncEvery<1>{}};
#endif
  (void)policy.bind(replica);
}
