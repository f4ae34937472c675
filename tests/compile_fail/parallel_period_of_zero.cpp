// expect: Period<N> of ModelAverage: a period is 1 step (or epoch) or more
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/average/model_average.hpp>

namespace sk = skein;

#ifndef SKEIN_TWIN
using Policy = sk::parallel::ModelAverage<sk::SelfComm, sk::parallel::Period<0>>;
#else
using Policy = sk::parallel::ModelAverage<sk::SelfComm, sk::parallel::Period<1>>;
#endif

void f(sk::SelfComm& world) { Policy policy{world}; }
