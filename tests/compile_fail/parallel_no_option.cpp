// expect: the options of DataParallel are types such as SyncEvery<4>, Compress<...>, Sharded<1>: one of these is none
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/data_parallel.hpp>

namespace sk = skein;

#ifndef SKEIN_TWIN
using Policy = sk::parallel::DataParallel<sk::SelfComm, int>;
#else
using Policy = sk::parallel::DataParallel<sk::SelfComm>;
#endif

void f(sk::SelfComm& world) { Policy policy{world}; }
