// SPDX-License-Identifier: Apache-2.0
// Networks of branches on the GPU beside the Cpu, step by step, launched and replayed: sums and joins of flat samples and of
// images, with layers that the library has no kernel of a vendor for, under each loss over elements.
#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace containers_test {
struct Swish {
  template <class T> constexpr T operator()(T x) const { return x / (T(1) + exp(-x)); }
};
struct Block
    : nn::Residual<
          nn::Sequential<nn::LayerNorm<>, nn::Linear<19>, nn::Elementwise<Swish>, nn::Dropout<sk::Rate<1, 5>>, nn::Linear<11>>> {
};
struct Branches : nn::Concat<nn::Linear<3>, nn::Sequential<nn::Linear<10>, nn::Gelu>, nn::Sequential<nn::LayerNorm<>, nn::Tanh>> {
};
using Flat = nn::Sequential<nn::Linear<11>, Block, nn::Residual<nn::Linear<7>, nn::Sequential<nn::Linear<7>, nn::LeakyRelu<>>>,
                            Branches, nn::Linear<4>>;
/// Images without a convolution: the join is along their channels.
using Image = nn::Sequential<nn::Concat<nn::LayerNorm<>, nn::Elementwise<Swish>>, nn::Residual<nn::LayerNorm<>>, nn::Dropout<>,
                             nn::Flatten, nn::Linear<4>>;
}  // namespace containers_test
using namespace containers_test;

TEST_CASE("Residual and Concat of flat samples on a GPU train as on the Cpu", "[nn][cuda]") {
  twins::agree<Flat, sk::Shape<9>, double>(nn::CrossEntropy{}, optim::Adam{.lr = 0.01f});
  twins::agree<Flat, sk::Shape<9>, double>(nn::Huber{.delta = 0.4}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
}
TEST_CASE("Residual and Concat of images on a GPU train as on the Cpu", "[nn][cuda]") {
  twins::agree<Image, sk::Shape<3, 2, 5>, double>(nn::BinaryCrossEntropy{.positive_weight = {1, 2, 3, 4}},
                                                  optim::RmsProp{.lr = 0.01f});
  twins::agree<Image, sk::Shape<3, 2, 5>>(nn::Mse{}, optim::AdamW{.lr = 0.01f, .amsgrad = true});
}
TEST_CASE("A likelihood of log-probabilities on a GPU trains as on the Cpu", "[nn][cuda]") {
  twins::agree<nn::Sequential<nn::Linear<12>, nn::Sigmoid, nn::Linear<4>, nn::Elementwise<Swish>>, sk::Shape<9>, double>(
      nn::Nll{.class_weights = {1, 2, 0.5f, 1}, .ignore_label = 2}, optim::Sgd{.lr = 0.05f});
}
