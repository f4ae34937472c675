// SPDX-License-Identifier: Apache-2.0
// Graphs: every wiring has the gradient of finite differences, whatever the threads and the executor; a chain and a residual
// network written as a graph have the bits of Sequential and Residual; memory, names and summary.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/precision.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/summary.hpp>
#include <skein/nn/tanh.hpp>

#include "../support/naive_layers.hpp"
#include "../support/network_gradients.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace graph_test {

struct a;
struct b;
struct c;
struct d;
struct e;
struct f;
struct g;
struct x;
struct y;

using naive::Center, naive::Flatten, naive::Linear, naive::Tanh;
template <class L, class Reads, class Writes> using Apply = nn::Apply<L, Reads, Writes>;
template <class... Names> using From = nn::From<Names...>;
template <class Name> using To = nn::To<Name>;

/// An edge read by three, a gate, sums of two and of three, an edge that is added to itself.
using Diamond =
    nn::Graph<nn::Input<x>, Apply<Linear<6>, From<x>, To<a>>, Apply<nn::Sequential<Linear<9>, Tanh, Linear<6>>, From<a>, To<b>>,
              Apply<Tanh, From<a>, To<c>>, Apply<nn::Multiply, From<b, c>, To<d>>, Apply<nn::Add, From<d, a, c>, To<e>>,
              Apply<nn::Add, From<e, e>, To<f>>, Apply<Linear<2>, From<f>, To<y>>, nn::Output<y>>;
/// A gate within a residual block: a join adds to an edge whose gradient is another edge's so far, and makes a second one.
using Gated = nn::Graph<nn::Input<x>, Apply<Linear<6>, From<x>, To<a>>, Apply<Linear<6>, From<x>, To<b>>,
                        Apply<nn::Multiply, From<a, b>, To<c>>, Apply<Linear<6>, From<c>, To<d>>,
                        Apply<nn::Add, From<a, d>, To<e>>, Apply<Linear<2>, From<e>, To<y>>, nn::Output<y>>;
/// The same where the join reads that edge twice.
using Squared = nn::Graph<nn::Input<x>, Apply<Linear<6>, From<x>, To<a>>, Apply<nn::Multiply, From<a, a>, To<b>>,
                          Apply<nn::Add, From<b, b, a>, To<c>>, Apply<Linear<2>, From<c>, To<y>>, nn::Output<y>>;
/// Nobody but joins between the input and the output.
using Bare = nn::Graph<nn::Input<x>, Apply<nn::Concatenate, From<x, x>, To<a>>, Apply<nn::Multiply, From<a, a>, To<b>>,
                       Apply<nn::Add, From<b, a>, To<c>>, Apply<Linear<3>, From<c>, To<y>>, nn::Output<y>>;
/// Renamed edges: of the input, of an inner edge, of the output.
using Renamed = nn::Graph<nn::Input<x>, Apply<Flatten, From<x>, To<a>>, Apply<nn::Identity, From<a>, To<b>>,
                          Apply<Linear<5>, From<b>, To<c>>, Apply<nn::Identity, From<c>, To<d>>, Apply<Linear<5>, From<a>, To<e>>,
                          Apply<nn::Add, From<d, e>, To<f>>, Apply<nn::Identity, From<f>, To<y>>, nn::Output<y>>;
/// Two inputs with shapes, of which one is flat and one is not, and three outputs, of which one is read again.
using Parts =
    nn::Graph<nn::Input<a, sk::Shape<2, 2, 1>>, nn::Input<b, sk::Shape<3>>, Apply<Flatten, From<a>, To<c>>,
              Apply<Linear<5>, From<c>, To<d>>, Apply<Linear<4>, From<b>, To<e>>, Apply<nn::Concatenate, From<d, e, b>, To<f>>,
              Apply<nn::Sequential<Linear<3>, Tanh>, From<f>, To<x>>, Apply<Linear<2>, From<x>, To<y>>, nn::Output<y>,
              nn::Output<x>, Apply<Tanh, From<d>, To<g>>, nn::Output<g>>;

/// A join of one's own: y = a / (1 + b^2).
struct Damped {
  static constexpr sk::JoinSpec describe(sk::Edge a, sk::Edge b) {
    return {.output = a, .backward_reads_inputs = true, .flops = 3 * a.count(), .accepts = a == b};
  }
  static void forward(auto& f) { f.y() = f.a() / (1 + f.b() * f.b()); }
  static void backward(auto& f) {
    f.da() = f.dy() / (1 + f.b() * f.b());
    f.db() = f.dy() * f.a() * f.b() * -2 / square(1 + f.b() * f.b());
  }
};
using Own = nn::Graph<nn::Input<x>, Apply<nn::Linear<6>, From<x>, To<a>>, Apply<nn::Linear<6>, From<x>, To<b>>,
                      Apply<Damped, From<a, b>, To<c>>, Apply<Damped, From<c, a>, To<y>>, nn::Output<y>>;

}  // namespace graph_test
using namespace graph_test;

TEST_CASE("graphs have the gradient of finite differences", "[nn]") {
  support::check_gradient<Diamond, sk::Shape<4>>();
  support::check_gradient<Bare, sk::Shape<4>>();
  support::check_gradient<Gated, sk::Shape<4>>();
  support::check_gradient<Squared, sk::Shape<4>>();
  support::check_gradient<nn::Sequential<Linear<4>, Bare, Tanh>, sk::Shape<3>>();
  support::check_gradient<Parts, Parts::input>();
  support::check_gradient<nn::Sequential<Linear<7>, Parts, Linear<2>>, sk::Shape<4>>();
}
TEST_CASE("renamed edges of a graph share memory and keep the gradient", "[nn]") {
  support::check_gradient<Renamed, sk::Shape<4, 4, 1>>();
  support::check_gradient<nn::Sequential<Linear<6>, Renamed, Tanh>, sk::Shape<5>>();
  // The input is the output, beside something that is trained.
  using Through = nn::Graph<nn::Input<x>, Apply<Linear<3>, From<x>, To<y>>, nn::Output<x>, nn::Output<y>>;
  support::check_gradient<nn::Sequential<Linear<6>, Through>, sk::Shape<5>>();
  using Nothing = nn::Graph<nn::Input<x>, Apply<nn::Identity, From<x>, To<y>>, nn::Output<y>>;
  support::check_gradient<nn::Sequential<Linear<6>, Nothing, Nothing, Linear<2>>, sk::Shape<5>>();
}
TEST_CASE("graphs within containers, and containers and graphs within graphs", "[nn]") {
  using Inner =
      nn::Graph<nn::Input<x>, Apply<nn::Residual<nn::Sequential<Linear<6>, Tanh>>, From<x>, To<a>>,
                Apply<nn::Concat<Linear<2>, Linear<4>>, From<a>, To<b>>, Apply<nn::Multiply, From<a, b>, To<y>>, nn::Output<y>>;
  using Outer = nn::Graph<nn::Input<x>, Apply<nn::Repeat<3, Inner>, From<x>, To<a>>, Apply<Inner, From<x>, To<b>>,
                          Apply<nn::Add, From<a, b>, To<y>>, nn::Output<y>>;
  support::check_gradient<nn::Sequential<Linear<6>, Outer, Linear<2>>, sk::Shape<4>>();
  support::check_gradient<nn::Residual<nn::Sequential<Tanh, Inner, Linear<6>>>, sk::Shape<6>>();
  // Layers that couple the samples, and such as would divide their gradient among workers.
  using Coupled = nn::Graph<nn::Input<x>, Apply<Linear<6>, From<x>, To<a>>, Apply<Center, From<a>, To<b>>,
                            Apply<nn::Add, From<a, b>, To<y>>, nn::Output<y>>;
  support::check_gradient<Coupled, sk::Shape<4>>(true);
  using Wide = nn::Graph<nn::Input<x>, Apply<Linear<20, true>, From<x>, To<a>>, Apply<Linear<20, true>, From<a>, To<b>>,
                         Apply<nn::Add, From<a, b>, To<y>>, nn::Output<y>>;
  support::check_gradient<nn::Sequential<Linear<17, true>, Wide, Linear<3, true>>, sk::Shape<4>>();
}
TEST_CASE("workers divide the gradients of a graph's layers as they do those of a Sequential", "[nn]") {
  using Chain = nn::Sequential<Linear<20, true>, Tanh, Linear<33, true>, nn::Identity, Linear<17, true>>;
  using Net = nn::Graph<nn::Input<x>, Apply<nn::Sequential<Linear<20, true>, Tanh>, From<x>, To<a>>,
                        Apply<Linear<33, true>, From<a>, To<b>>, Apply<nn::Identity, From<b>, To<c>>,
                        Apply<Linear<17, true>, From<c>, To<y>>, nn::Output<y>>;
  support::check_gradient<Net, sk::Shape<4>>();
  support::Double<Chain, sk::Shape<4>> chain{sk::Seed{5}};
  support::Double<Net, sk::Shape<4>> graph{sk::Seed{5}};
  support::Data<decltype(graph)> data(7);
  for (const int threads : {1, 2, 4}) {
    const sk::ExecutorOptions options{.execution = sk::Execution::layer_wise, .threads = threads};
    CHECK(support::gradient(graph, data.batch, options) == support::gradient(chain, data.batch, options));
  }
  STATIC_REQUIRE(nn::analyze<Net>({1, {4}}).whole_gradient);
  // Edges of layers that want one array, read by several, renamed, output beside others, and renamed on the way out.
  using Many = nn::Graph<nn::Input<x>, Apply<Linear<9, true>, From<x>, To<a>>, Apply<Linear<9, true>, From<a>, To<b>>,
                         Apply<nn::Add, From<a, b, b>, To<c>>, Apply<Tanh, From<c>, To<d>>,
                         Apply<Linear<5, true>, From<d>, To<e>>, Apply<nn::Multiply, From<e, e>, To<f>>,
                         Apply<nn::Identity, From<e>, To<g>>, nn::Output<f>, nn::Output<g>, nn::Output<b>>;
  support::check_gradient<nn::Sequential<Linear<6, true>, Many, Linear<2, true>>, sk::Shape<4>>();
  support::check_gradient<nn::Sequential<Linear<6, true>, Net, nn::Identity, Linear<2, true>>, sk::Shape<4>>();
}
TEST_CASE("check_gradients knows graphs, to their inputs", "[nn]") {
  CHECK(sk::check_gradients<Diamond, sk::Shape<4>>());
  CHECK(sk::check_gradients<Renamed, sk::Shape<4, 4, 1>>());
  CHECK(sk::check_gradients<Own, sk::Shape<4>>());
  const auto parts = sk::check_gradients<Parts, Parts::input>();
  CHECK(parts);
  CHECK(parts.tried > 3 * Parts::input::count);
}
TEST_CASE("images are joined along their channels", "[nn]") {
  using Net = nn::Graph<nn::Input<x>, Apply<nn::Conv2d<3, sk::Kernel<3>>, From<x>, To<a>>,
                        Apply<nn::Conv2d<2, sk::Kernel<3>>, From<x>, To<b>>, Apply<nn::Concatenate, From<a, b>, To<c>>,
                        Apply<nn::Conv2d<5, sk::Kernel<1>>, From<c>, To<d>>, Apply<nn::Multiply, From<c, d>, To<e>>,
                        Apply<nn::Flatten, From<e>, To<f>>, Apply<nn::Linear<3>, From<f>, To<y>>, nn::Output<y>>;
  CHECK(sk::check_gradients<Net, sk::Shape<5, 4, 2>>());
  support::check_gradient<Net, sk::Shape<5, 4, 2>>();
}

namespace {
template <class Net, class Input> std::vector<float> trained(int threads, sk::Execution execution) {
  using Model = sk::Model<Net, Input>;
  Model model{sk::Seed{3}};
  constexpr long in = sk::sample_pitch(Input::extents), out = sk::sample_pitch(Model::output_extents);
  std::vector<float> samples(static_cast<std::size_t>(13 * in)), targets(static_cast<std::size_t>(13 * out));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<float>(sk::random_uniform(1, 0, i)) - 0.5f;
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<float>(sk::random_uniform(1, 1, i)) - 0.5f;
  sk::BatchView<float> batch{samples.data(), in, nullptr, targets.data(), out, 13};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 13, .execution = execution, .block = 3, .threads = threads}};
  executor.forward_backward(batch);
  return {model.gradients().begin(), model.gradients().end()};
}
}  // namespace

TEST_CASE("a residual network as a graph has the bits of Residual", "[nn]") {
  using Body = nn::Sequential<nn::Linear<40>, nn::Relu, nn::Linear<20>>;
  using Chain = nn::Sequential<nn::Linear<20>, nn::Residual<Body>, nn::Tanh, nn::Residual<Body, nn::Linear<20>>, nn::Linear<5>>;
  using Net = nn::Graph<nn::Input<x>, Apply<nn::Linear<20>, From<x>, To<a>>, Apply<Body, From<a>, To<b>>,
                        Apply<nn::Add, From<b, a>, To<c>>, Apply<nn::Tanh, From<c>, To<d>>, Apply<Body, From<d>, To<e>>,
                        Apply<nn::Linear<20>, From<d>, To<f>>, Apply<nn::Add, From<e, f>, To<g>>,
                        Apply<nn::Linear<5>, From<g>, To<y>>, nn::Output<y>>;
  using In = sk::Shape<11>;
  STATIC_REQUIRE(sk::Model<Net, In>::parameter_count == sk::Model<Chain, In>::parameter_count);
  for (const int threads : {1, 2, 4})
    for (const auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
      CHECK(trained<Net, In>(threads, execution) == trained<Chain, In>(threads, execution));
}

TEST_CASE("edges of a graph that backward does not read share scratch memory", "[nn]") {
  using Chain = nn::Graph<nn::Input<x>, Apply<nn::Linear<16>, From<x>, To<a>>, Apply<nn::Identity, From<a>, To<b>>,
                          Apply<nn::Add, From<b, a>, To<c>>, Apply<nn::Add, From<c, c>, To<d>>, Apply<nn::Add, From<d, d>, To<e>>,
                          Apply<nn::Add, From<e, e>, To<f>>, Apply<nn::Add, From<f, f>, To<y>>, nn::Output<y>>;
  // Linear does not read its output, sums read nothing: two arrays do.
  STATIC_REQUIRE(Chain::analyze({1, {16}}).kept_activations == 0);
  STATIC_REQUIRE(Chain::analyze({1, {16}}).scratch == 2 * 16);
  STATIC_REQUIRE(Diamond::analyze({1, {4}}).saves_input);
}
TEST_CASE("what is applied is numbered in names, and neighbours within an item are fused", "[nn]") {
  using Net = nn::Graph<nn::Input<a, sk::Shape<4>>, nn::Input<b, sk::Shape<3>>,
                        Apply<nn::Sequential<nn::Linear<5>, nn::Relu>, From<a>, To<c>>, Apply<nn::Linear<5>, From<b>, To<d>>,
                        Apply<nn::Add, From<c, d>, To<e>>, Apply<nn::Repeat<2, nn::Linear<5>>, From<e>, To<f>>,
                        Apply<nn::Linear<2>, From<f>, To<y>>, nn::Output<y>, nn::Output<e>>;
  using Model = sk::Model<Net, Net::input>;
  std::string names;
  for (const auto& p : Model::program.parameters()) names += std::string(std::string_view(Model::program.name(p))) + " ";
  CHECK(names == "0.0.weight 0.0.bias 1.weight 1.bias 3.weight 3.bias 4.weight 4.bias 5.weight 5.bias ");
  STATIC_REQUIRE(Model::output_extents == sk::Extents{1, {7}});
  STATIC_REQUIRE(!std::is_same_v<Model::fused, Net>);
  STATIC_REQUIRE(nn::analyze<Model::fused>(Net::input::extents).layer_nodes == Model::sizes.layer_nodes);
  STATIC_REQUIRE(Model::program.layer_node_count == Model::sizes.layer_nodes);
  STATIC_REQUIRE(Model::flops == [] {
    long n = 0;
    for (const auto& o : Model::program.layers()) n += o.flops;
    return n;
  }());
  const std::string text = sk::summary<Model>();
  CHECK(text.find("0.0           Linear<5>") != std::string::npos);
  CHECK(text.find("2             Add") != std::string::npos);
  CHECK(text.find("with the one above") != std::string::npos);
  STATIC_REQUIRE(nn::output_columns<e, Net, Net::input>().begin == 2);
  STATIC_REQUIRE(nn::output_columns<e, Net, Net::input>().count == 5);
  STATIC_REQUIRE(nn::output_columns<e, Net, Net::input>().number == 1);
  STATIC_REQUIRE(nn::output_columns<c, Net, Net::input>().number == -1);
}

TEST_CASE("what is wrong with a graph is found by value", "[nn]") {
  using nn::GraphFault;
  auto fault = []<class... Items>(nn::Graph<Items...>) { return nn::Graph<Items...>::plan({1, {4}}).fault; };
  using In = nn::Input<x>;
  using Line = Apply<Linear<3>, From<x>, To<y>>;
  CHECK(fault(nn::Graph<In, Line, nn::Output<y>>{}) == GraphFault::none);
  CHECK(fault(nn::Graph<In, Line, nn::Output<b>>{}) == GraphFault::unknown_edge);
  CHECK(fault(nn::Graph<In, nn::Output<y>, Line>{}) == GraphFault::read_before_written);
  CHECK(fault(nn::Graph<In, Apply<nn::Add, From<x, y>, To<y>>, nn::Output<y>>{}) == GraphFault::read_before_written);
  CHECK(fault(nn::Graph<In, Apply<Linear<3>, From<x>, To<x>>, nn::Output<x>>{}) == GraphFault::written_twice);
  CHECK(fault(nn::Graph<In, Line, Line, nn::Output<y>>{}) == GraphFault::written_twice);
  CHECK(fault(nn::Graph<In, Line, nn::Output<x>>{}) == GraphFault::never_read);
  CHECK(fault(nn::Graph<In, nn::Input<a>, Line, nn::Output<y>>{}) == GraphFault::never_read);
  CHECK(fault(nn::Graph<In, nn::Input<a>, Line, nn::Output<y>, nn::Output<a>>{}) == GraphFault::inputs_mixed);
  CHECK(fault(nn::Graph<nn::Input<x, sk::Shape<3>>, Line, nn::Output<y>>{}) == GraphFault::inputs_differ);
  CHECK(fault(nn::Graph<In, Apply<nn::Add, From<x, x>, To<y>>>{}) == GraphFault::never_read);
  CHECK(fault(nn::Graph<In, Line, nn::Output<y>, nn::Output<y>>{}) == GraphFault::output_twice);
  CHECK(fault(nn::Graph<In, Apply<Linear<3>, From<x, x>, To<y>>, nn::Output<y>>{}) == GraphFault::layer_of_several);
  CHECK(fault(nn::Graph<In, Apply<nn::Add, From<x>, To<y>>, nn::Output<y>>{}) == GraphFault::join_of_one);
  CHECK(fault(nn::Graph<In, Apply<nn::Add, From<x, x, x, x, x, x, x, x, x>, To<y>>, nn::Output<y>>{}) ==
        GraphFault::too_many_edges);
  CHECK(fault(nn::Graph<In, Line, Apply<nn::Multiply, From<x, y>, To<a>>, nn::Output<a>>{}) == GraphFault::join_refuses);
  CHECK(fault(nn::Graph<In, Apply<nn::Multiply, From<x, x, x>, To<a>>, nn::Output<a>>{}) == GraphFault::join_of_two);
  CHECK(fault(nn::Graph<In, Line>{}) == GraphFault::never_read);
  CHECK(fault(nn::Graph<In, sk::Shape<3>>{}) == GraphFault::not_an_item);
}

TEST_CASE("a graph of 16-bit activations is near to one of floats", "[nn]") {
  using Input = sk::Shape<9>;
  using Net = nn::Graph<nn::Input<x>, Apply<nn::Linear<16>, From<x>, To<a>>, Apply<nn::Tanh, From<a>, To<b>>,
                        Apply<nn::Multiply, From<a, b>, To<c>>, Apply<nn::Concatenate, From<c, a>, To<d>>,
                        Apply<nn::Add, From<d, d>, To<e>>, Apply<nn::Linear<3>, From<e>, To<y>>, nn::Output<y>>;
  auto run = []<class Precision>(Precision) {
    sk::Model<Net, Input, sk::Cpu, Precision> model{sk::Seed{4}};
    std::vector<float> samples(8 * 16), targets(8 * 3, 0.5f);
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<float>(sk::random_uniform(2, 0, i)) - 0.5f;
    sk::BatchView<float> batch{samples.data(), 16, nullptr, targets.data(), 3, 8};
    sk::Executor executor{model, nn::Mse{}, {.capacity = 8, .threads = 2}};
    executor.forward_backward(batch);
    return std::vector<float>(model.gradients().begin(), model.gradients().end());
  };
  const auto narrow = run(sk::precision::bf16{}), wide = run(sk::precision::fp32{});
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    error += std::pow(narrow[i] - wide[i], 2);
    norm += std::pow(wide[i], 2);
  }
  CHECK(error > 0);
  CHECK(std::sqrt(error / norm) < 0.02);
}
