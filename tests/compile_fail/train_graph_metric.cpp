// expect: metric_on: this output's loss compares with a class number where the metric takes targets, or the other way
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/nn/model.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/metrics/graph_metric.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct x;
struct y;

struct Net : nn::Graph<nn::Input<x>, nn::Apply<nn::Linear<3>, nn::From<x>, nn::To<y>>, nn::Output<y>> {};

int main() {
  const auto loss = nn::graph_loss<sk::Model<Net, sk::Shape<9>>>(nn::on<y>(nn::CrossEntropy{}));
#ifdef SKEIN_TWIN
  (void)sk::train::metric_on<y>(loss, sk::train::Accuracy{}, "y");
#else
  (void)sk::train::metric_on<y>(loss, sk::train::MeanAbsoluteError{}, "y");
#endif
}
