// expect: this communicator moves memory of another device
// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/self/self_comm.hpp"
#include "skein/nn/weights.hpp"

#ifdef SKEIN_TWIN
using Device = skein::Cpu;
#else
using Device = skein::Cuda;
#endif

void share(skein::SelfComm& world, skein::Weights<float, Device>& weights) { world.broadcast(weights.modify()); }
