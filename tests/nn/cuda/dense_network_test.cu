// SPDX-License-Identifier: Apache-2.0
// Networks of linear layers, trained for some steps on both devices: every composite in its place, launched and as a graph.
#include <skein/cuda.hpp>

#include "../../train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
template <class... Ls> using Net = nn::Sequential<Ls...>;
using Demo = Net<nn::Linear<80>, nn::Relu, nn::Linear<80>, nn::Relu, nn::Linear<40>, nn::Tanh, nn::Linear<1>>;
using Mixed = Net<nn::Linear<33, sk::NoBias>, nn::BasicGelu<nn::TanhForm>, nn::Residual<Net<nn::Linear<33>, nn::Gelu>>,
                  nn::Linear<3>, nn::Sigmoid, nn::Concat<Net<nn::Linear<7>, nn::LeakyRelu<>>, nn::Linear<2>>, nn::Linear<10>>;
}  // namespace

TEST_CASE("A network of linear layers trains alike on both devices", "[linear][network]") {
  twins::agree<Demo, sk::Shape<1>>(nn::Mse{}, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9f}, {.batch = 50, .last = 31});
}
TEST_CASE("A network with every composite of Linear trains alike on both devices", "[linear][network]") {
  twins::agree<Mixed, sk::Shape<17>>(nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.01f}, {.batch = 13, .last = 1, .accumulate = 2},
                                     2e-4);
}
TEST_CASE("A network of linear layers: the summary says what runs", "[linear][network]") {
  const std::string text = sk::summary<sk::Model<Demo, sk::Shape<1>, sk::Cuda>>();
  CHECK(text.find("cuBLASLt, fused, 2 layers") != text.npos);
  CHECK(text.find("on Cuda") != text.npos);
  CHECK(text.find("OnDevice") == text.npos);
}
