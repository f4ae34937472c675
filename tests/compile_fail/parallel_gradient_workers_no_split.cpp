// expect: GradientWorkers needs communicators of some of the ranks, and this one has no split(): take MpiComm, GlooComm, ThreadComm or
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/counted.hpp>
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/gradient_workers.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Comm = sk::ThreadComm;
#else
using Comm = sk::Counted<sk::ThreadComm>;
#endif
using State = sk::parallel::DataParallelStateOf<Comm, float, sk::Cpu, sk::parallel::GradientWorkers<sk::parallel::OneRank>>;
static_assert(sizeof(State) > 0);
