// expect: precision::tf32 is a mode of a GPU's matrix units: on the Cpu use precision::fp32
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
#ifdef SKEIN_TWIN
using P = sk::precision::fp32;
#else
using P = sk::precision::tf32;
#endif

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<3>>, sk::Shape<4>, sk::Cpu, P> model;
  return model.parameter_count == 15 ? 0 : 1;
}
