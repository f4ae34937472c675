// expect: the third argument of a Model is its device, Cpu or Cuda; the type of its numbers is the fourth
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

using Net = sk::nn::Sequential<sk::nn::Linear<4>>;

int main() {
#ifdef SKEIN_TWIN
  sk::Model<Net, sk::Shape<8>, sk::Cpu, double> model;
#else
  sk::Model<Net, sk::Shape<8>, double> model;
#endif
}
