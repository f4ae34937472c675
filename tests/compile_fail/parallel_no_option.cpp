// expect: the options of DataParallel are types such as SyncEvery<4>, Compress<...>, Sharded<1>: one of these is none
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/data_parallel.hpp>

namespace sk = skein;

void f(sk::SelfComm& world) {
#ifndef SKEIN_TWIN
  sk::parallel::DataParallel policy{world, 4};
#else
  sk::parallel::DataParallel policy{world};
#endif
}
