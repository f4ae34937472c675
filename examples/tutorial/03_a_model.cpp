// SPDX-License-Identifier: Apache-2.0
// Step 3 of docs/tutorial.md: a network is a type, a model holds its weights.
#include <skein/skein.hpp>

#include <cstdio>
namespace sk = skein;

using Curve = sk::nn::Sequential<sk::nn::Linear<32>, sk::nn::Tanh, sk::nn::Linear<1>>;

int main() {
  sk::Model<Curve, sk::Shape<1>> model{sk::Seed{1}};  // a sample has one number
  static_assert(decltype(model)::parameter_count == 32 + 32 + 32 + 1);
  std::printf("%s", sk::summary(model).c_str());
}
