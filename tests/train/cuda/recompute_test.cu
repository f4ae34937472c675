// SPDX-License-Identifier: Apache-2.0
// Blocks that are calculated again, and a beginning that is not trained, on a GPU: the Cpu's steps, launched and replayed.
#include <catch2/catch.hpp>

#include <skein/nn/recompute.hpp>

#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Wide = nn::Sequential<nn::Linear<40>, nn::LayerNorm<>, nn::Tanh, nn::Dropout<sk::Rate<1, 4>>, nn::Linear<24>>;
template <class Function> using Narrow = nn::Recompute<nn::Residual<nn::Sequential<Function, nn::Linear<24>>>>;
using Twice = nn::Repeat<2, Narrow<nn::Sigmoid>>;
using Net = nn::Sequential<nn::Linear<24>, nn::Recompute<Wide>, Narrow<nn::Tanh>, Twice, nn::Linear<3>>;
}  // namespace

TEST_CASE("blocks that are calculated again have the Cpu's steps on a GPU", "[train][cuda]") {
  twins::agree<Net, sk::Shape<9>, double>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.05f, .momentum = 0.9}, {}, 1e-10);
}
TEST_CASE("a network whose beginning is not trained has the Cpu's steps on a GPU", "[train][cuda]") {
  optim::Adam adam{.lr = 0.01f};
  adam.groups = {optim::frozen("0.*"), optim::frozen("1.*")};
  twins::agree<Net, sk::Shape<9>, double>(nn::CrossEntropy{}, adam, {}, 1e-10);
}
