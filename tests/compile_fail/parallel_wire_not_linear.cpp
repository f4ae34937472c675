// expect: Algorithm names an all-reduce, and this compressor is not linear: what it writes is gathered, not added. Leave Algorithm out, or take a linear compressor
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/compress/half_wire.hpp>
#include <skein/comm/compress/int8_wire.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/algorithm.hpp>
#include <skein/parallel/wire.hpp>

namespace sk = skein;
using namespace skein::parallel;

#ifdef SKEIN_TWIN
using Compressor = sk::comm::HalfWire<sk::bf16>;
#else
using Compressor = sk::comm::Int8Wire<>;
#endif

int main() {
  sk::SelfComm world;
  const auto policy = data_parallel<Wire<Compressor>, Algorithm<Ring>>(world);
  return policy.bind(Replica<float, sk::Cpu>{}).ranks() - 1;
}
