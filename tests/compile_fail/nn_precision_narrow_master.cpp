// expect: the master weights are narrower than what is computed of them: make Master at least Compute
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
#ifdef SKEIN_TWIN
using P = sk::Precision<double, double, double>;
#else
using P = sk::Precision<double, double, float>;
#endif

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<3>>, sk::Shape<4>, sk::Cpu, P> model;
  return model.parameter_count == 15 ? 0 : 1;
}
