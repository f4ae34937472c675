// expect: ModelAverage is given its period: ModelAverage{world, Period<4>{}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/average/model_average.hpp>

namespace sk = skein;

void f(sk::SelfComm& world) {
#ifndef SKEIN_TWIN
  sk::parallel::ModelAverage policy{world, {.weighted = false}};
#else
  sk::parallel::ModelAverage policy{world, {.weighted = false}, sk::parallel::Period<4>{}};
#endif
}
