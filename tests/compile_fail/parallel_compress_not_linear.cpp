// expect: Algorithm names an all-reduce, and this compressor is not linear: what it writes is gathered, not added. Leave Algorithm out, or take a linear compressor
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/compress/half_codec.hpp>
#include <skein/comm/compress/int8_codec.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/parallel/data/algorithm.hpp>
#include <skein/parallel/data/compress.hpp>

namespace sk = skein;
using namespace skein::parallel;

#ifdef SKEIN_TWIN
using Compressor = sk::comm::HalfCodec<sk::bf16>;
#else
using Compressor = sk::comm::Int8Codec<>;
#endif

int main() {
  sk::SelfComm world;
  const auto policy = DataParallel{world, Compress<Compressor>{}, Algorithm<Ring>{}};
  return policy.bind(Replica<float, sk::Cpu>{}).ranks() - 1;
}
