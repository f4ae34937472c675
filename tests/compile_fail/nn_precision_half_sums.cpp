// expect: Accumulate is float or double: sums of 16-bit numbers stop growing at 256 or 2048
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
#ifdef SKEIN_TWIN
using P = sk::Precision<sk::fp16, float, float>;
#else
using P = sk::Precision<sk::fp16, sk::fp16, float>;
#endif

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<3>>, sk::Shape<4>, sk::Cpu, P> model;
  return model.parameter_count == 15 ? 0 : 1;
}
