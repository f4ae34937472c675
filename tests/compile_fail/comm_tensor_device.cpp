// expect: this communicator moves memory of another device
// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/self/self_comm.hpp"
#include "skein/tensor/tensor.hpp"

#ifdef SKEIN_TWIN
using Device = skein::Cpu;
#else
using Device = skein::Cuda;
#endif

void sum(skein::SelfComm& world, skein::Tensor<float, 1, Device>& t) { world.all_reduce(t); }
