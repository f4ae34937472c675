// SPDX-License-Identifier: Apache-2.0
// Networks that are no chain on the GPU beside the Cpu, step by step, launched and replayed: sums, joins, gates, parts of the
// input and of the output.
#include "train/cuda/step_twins.hpp"

#include <skein/nn/graph.hpp>
#include <skein/nn/loss/graph_loss.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace graph_cuda_test {
struct a;
struct b;
struct c;
struct d;
struct e;
struct f;
struct g;
struct x;
struct y;
using nn::Apply, nn::From, nn::To;

using Diamond =
    nn::Graph<nn::Input<x>, Apply<nn::Linear<6>, From<x>, To<a>>,
              Apply<nn::Sequential<nn::Linear<9>, nn::Relu, nn::Dropout<sk::Rate<1, 5>>, nn::Linear<6>>, From<a>, To<b>>,
              Apply<nn::Tanh, From<a>, To<c>>, Apply<nn::Multiply, From<b, c>, To<d>>, Apply<nn::Add, From<d, a, c>, To<e>>,
              Apply<nn::Linear<4>, From<e>, To<y>>, nn::Output<y>>;
using Parts = nn::Graph<nn::Input<a, sk::Shape<5, 4, 1>>, nn::Input<b, sk::Shape<3>>, Apply<nn::LayerNorm<>, From<a>, To<c>>,
                        Apply<nn::Sequential<nn::Flatten, nn::Linear<5>>, From<c>, To<d>>, Apply<nn::Linear<4>, From<b>, To<e>>,
                        Apply<nn::Concatenate, From<d, e>, To<f>>, Apply<nn::Linear<3>, From<f>, To<x>>,
                        Apply<nn::Linear<2>, From<x>, To<y>>, nn::Output<y>, nn::Output<x>>;
}  // namespace graph_cuda_test
using namespace graph_cuda_test;

TEST_CASE("A graph on a GPU trains as on the Cpu", "[nn][cuda]") {
  twins::agree<Diamond, sk::Shape<9>, double>(nn::CrossEntropy{}, optim::Adam{.lr = 0.01f});
  twins::agree<nn::Sequential<nn::Linear<7>, Diamond>, sk::Shape<9>>(nn::Mse{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
}
TEST_CASE("A graph of two inputs and two outputs on a GPU trains as on the Cpu", "[nn][cuda]") {
  twins::agree<Parts, Parts::input, double>(nn::Mse{}, optim::Sgd{.lr = 0.05f});
}

namespace {
/// Loss, and gradients of all parameters, of rows of a class number (of 2) and three values.
template <class Device, class Scalar> std::vector<double> gradients_of_parts() {
  sk::Model<Parts, Parts::input, Device, Scalar> model{sk::Seed{5}};
  using Model = decltype(model);
  const auto loss = nn::graph_loss<Model>(nn::on<y>(nn::CrossEntropy{.class_weights = {1, 3}}), nn::on<x>(nn::Mse{}, 0.25));
  constexpr long n = 7, in = sk::sample_pitch(Parts::input::extents), pitch = sk::row_pitch(4);
  std::vector<Scalar> samples(static_cast<std::size_t>(n * in)), targets(static_cast<std::size_t>(n * pitch));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<Scalar>(sk::random_uniform(1, 0, i) - 0.5);
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = static_cast<Scalar>(i % pitch == 0 ? static_cast<double>(i / pitch % 2) : sk::random_uniform(1, 1, i));
  const sk::BatchView<Scalar> batch{samples.data(), in, nullptr, targets.data(), pitch, n};
  sk::Executor executor{model, loss, {.capacity = n, .threads = 1}};
  executor.prepare(n);
  std::vector<double> all;
  for (int turn = 0; turn < 2; ++turn) {  // the sums of a part begin at zero again
    const nn::LossSums sums = executor.forward_backward(batch);
    all.push_back(sums.loss);
    all.push_back(sums.weight);
  }
  std::vector<Scalar> g(static_cast<std::size_t>(Model::sizes.stored));
  sk::Copy<sk::Cpu, Device>::run(g.data(), model.gradients().data, g.size() * sizeof(Scalar));
  all.insert(all.end(), g.begin(), g.end());
  return all;
}
template <class Scalar> double parts_apart() {
  const auto here = gradients_of_parts<sk::Cpu, Scalar>(), there = gradients_of_parts<sk::Cuda, Scalar>();
  double worst = 0;
  for (std::size_t i = 0; i < here.size(); ++i) worst = support::larger(worst, here[i] - there[i]);
  return worst;
}
}  // namespace

TEST_CASE("The loss of a graph's outputs on a GPU is that on the Cpu", "[nn][cuda]") {
  CHECK(parts_apart<double>() < 1e-12);
  CHECK(parts_apart<float>() < 1e-4);
  const auto loss = nn::graph_loss<sk::Model<Parts, Parts::input>>(nn::on<y>(nn::Mse{}), nn::on<x>(nn::Huber{.delta = 0.4}, 0.5));
  twins::agree<Parts, Parts::input, double>(loss, optim::Adam{.lr = 0.01f});
}
