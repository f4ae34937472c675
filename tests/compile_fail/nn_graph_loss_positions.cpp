// expect: graph_loss: a loss of labels takes one class number a sample here, and this output has several positions
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/each_position.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct x;
struct y;
struct z;

struct Net
    : nn::Graph<nn::Input<x>, nn::Apply<nn::EachPosition<nn::Linear<3>>, nn::From<x>, nn::To<y>>,
                nn::Apply<nn::Sequential<nn::Flatten, nn::Linear<4>>, nn::From<y>, nn::To<z>>, nn::Output<y>, nn::Output<z>> {};
using Model = sk::Model<Net, sk::Shape<4, 2>>;

int main() {
#ifdef SKEIN_TWIN
  (void)nn::graph_loss<Model>(nn::on<y>(nn::Mse{}), nn::on<z>(nn::CrossEntropy{}));
#else
  (void)nn::graph_loss<Model>(nn::on<y>(nn::CrossEntropy{}), nn::on<z>(nn::CrossEntropy{}));
#endif
}
