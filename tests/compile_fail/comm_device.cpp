// expect: this communicator moves memory of another device
// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/self/self_comm.hpp"

int main() {
  skein::SelfComm world;
  float x[4] = {};
#ifdef SKEIN_TWIN
  world.all_reduce(skein::DeviceSpan<float, skein::Cpu>{x, 4});
#else
  world.all_reduce(skein::DeviceSpan<float, skein::Cuda>{x, 4});
#endif
}
