// expect: the network ends with probabilities (Softmax or Sigmoid), and this loss takes logits
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/softmax.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct x;
struct y;
struct z;

struct Net : nn::Graph<nn::Input<x>, nn::Apply<nn::Linear<3>, nn::From<x>, nn::To<y>>,
                       nn::Apply<nn::Softmax, nn::From<y>, nn::To<z>>, nn::Output<y>, nn::Output<z>> {};
using Model = sk::Model<Net, sk::Shape<9>>;

int main() {
#ifdef SKEIN_TWIN
  (void)nn::graph_loss<Model>(nn::on<y>(nn::CrossEntropy{}), nn::on<z>(nn::Mse{}));
#else
  (void)nn::graph_loss<Model>(nn::on<y>(nn::Mse{}), nn::on<z>(nn::CrossEntropy{}));
#endif
}
