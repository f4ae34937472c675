// expect: gradients are summed where the master weights are: Accumulate must be Master
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
#ifdef SKEIN_TWIN
using P = sk::Precision<sk::bf16, double, double>;
#else
using P = sk::Precision<sk::bf16, float, double>;
#endif

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<3>>, sk::Shape<4>, sk::Cpu, P> model;
  return model.parameter_count == 15 ? 0 : 1;
}
