// expect: weighted_losses: all losses compare with the same targets, and here one takes class labels and another values
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/weighted_losses.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using Model = sk::Model<nn::Sequential<nn::Linear<3>>, sk::Shape<9>>;

int main() {
#ifdef SKEIN_TWIN
  (void)nn::weighted_losses<Model>(nn::on(nn::CrossEntropy{}), nn::on(nn::CrossEntropy{.label_smoothing = 0.1}, 0.1));
#else
  (void)nn::weighted_losses<Model>(nn::on(nn::CrossEntropy{}), nn::on(nn::Mse{}, 0.1));
#endif
}
