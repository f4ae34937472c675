// expect: the communicator moves memory of another device than the model's: MpiComm, GlooComm and ThreadComm go with Cpu; for Cuda take NcclComm, or HostBounce<MpiComm>, which copies through the host
// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/self/self_comm.hpp"

#ifdef SKEIN_TWIN
using Device = skein::Cpu;
#else
using Device = skein::Cuda;
#endif

int main() { skein::assert_communicator<skein::SelfComm, Device>(); }
