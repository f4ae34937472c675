// expect: this compressor is not linear, so it cannot be given to an all-reduce
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "skein/comm/compress/compressed_collectives.hpp"
#include "skein/comm/compress/int8_codec.hpp"
#include "skein/comm/self/self_comm.hpp"

int main() {
  skein::SelfComm world;
  std::vector<float> gradients(1000);
  skein::comm::Int8Codec<> int8;
#ifdef SKEIN_TWIN
  skein::comm::compressed_all_gather(world, int8, gradients);
#else
  skein::comm::compressed_all_reduce(world, int8, gradients);
#endif
}
