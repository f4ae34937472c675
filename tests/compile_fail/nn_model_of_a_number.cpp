// expect: the seed of a model is a Seed: sk::Model<...> model{sk::Seed{42}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

using Model = skein::Model<skein::nn::Sequential<skein::nn::Linear<1>>, skein::Shape<1>>;

int main() {
#ifdef SKEIN_TWIN
  Model model{skein::Seed{42}};
#else
  Model model{42};
#endif
  (void)model;
}
