// expect: a model is not copied, since nobody could tell which of the two is trained: take it as Model&
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

#include <utility>

using Model = skein::Model<skein::nn::Sequential<skein::nn::Linear<1>>, skein::Shape<1>>;

int main() {
  Model model;
#ifdef SKEIN_TWIN
  Model other = std::move(model);
#else
  Model other = model;
#endif
  (void)other;
}
