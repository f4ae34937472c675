// SPDX-License-Identifier: Apache-2.0
// What docs/guide/graph.md quotes: networks that are not a chain. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/graph.hpp>
#include <skein/skein.hpp>

namespace sk = skein;
namespace nn = skein::nn;

using nn::Apply, nn::From, nn::Input, nn::Output, nn::To;

// [quote residual]
struct in;
struct hidden;
struct body;
struct sum;
struct out;

// clang-format off
struct WithSkip : nn::Graph<
    Input<in>,
    Apply<nn::Linear<16>, From<in>, To<hidden>>,
    Apply<nn::Sequential<nn::Linear<32>, nn::Relu, nn::Linear<16>>, From<hidden>, To<body>>,
    Apply<nn::Add, From<body, hidden>, To<sum>>,
    Apply<nn::Linear<3>, From<sum>, To<out>>,
    Output<out>> {};
// clang-format on
using WithSkipModel = sk::Model<WithSkip, sk::Shape<8>>;
// [end]

// [quote two_inputs]
struct image;
struct table;
struct seen;
struct known;
struct both;
struct digit;
struct parity;

// clang-format off
struct Encoder : nn::Sequential<nn::Conv2d<4, sk::Kernel<3>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<16>> {};
struct TwoInputs : nn::Graph<
    Input<image, sk::Shape<8, 8, 1>>, Input<table, sk::Shape<3>>,
    Apply<Encoder, From<image>, To<seen>>,
    Apply<nn::Linear<8>, From<table>, To<known>>,
    Apply<nn::Concatenate, From<seen, known>, To<both>>,
    Apply<nn::Linear<10>, From<both>, To<digit>>,
    Apply<nn::Linear<2>, From<both>, To<parity>>,
    Output<digit>, Output<parity>> {};
// clang-format on
using TwoInputsModel = sk::Model<TwoInputs, TwoInputs::input>;          // a row: 64 values of the image, 3 of the table
static_assert(TwoInputsModel::output_extents == sk::Extents{1, {12}});  // a row: 10 values, then 2
// [end]

// [quote join]
/// y = a / (1 + exp(-b)): b opens and closes a.
struct Gate {
  static constexpr sk::JoinSpec describe(sk::Edge a, sk::Edge b) {
    return {.output = a, .backward_reads_inputs = true, .accepts = a == b};
  }
  static void forward(auto& f) { f.y() = f.a() / (1 + exp(-f.b())); }
  static void backward(auto& f) {
    const auto open = 1 / (1 + exp(-f.b()));
    f.da() = f.dy() * open;
    f.db() = f.dy() * f.a() * open * (1 - open);
  }
};
// [end]

// [quote shared]
struct two;
struct codes;
struct left;
struct right;
struct distance;
struct same;

/// The square of a - b, value by value.
struct SquaredDifference {
  static constexpr sk::JoinSpec describe(sk::Edge a, sk::Edge b) {
    return {.output = a, .backward_reads_inputs = true, .accepts = a == b};
  }
  static void forward(auto& f) { f.y() = square(f.a() - f.b()); }
  static void backward(auto& f) {
    const auto d = 2 * f.dy() * (f.a() - f.b());
    f.da() = d;
    f.db() = -d;
  }
};
// clang-format off
struct Shared : nn::Sequential<nn::Reshape<2, 12>, nn::EachPosition<nn::Linear<16>>, nn::Relu, nn::EachPosition<nn::Linear<4>>,
                               nn::Flatten> {};  // 4 values of the one, 4 of the other
struct Siamese : nn::Graph<
    Input<two>,                                  // 24 values: 12 of the one, 12 of the other
    Apply<Shared, From<two>, To<codes>>,
    Apply<nn::Slice<0, 4>, From<codes>, To<left>>,
    Apply<nn::Slice<4, 8>, From<codes>, To<right>>,
    Apply<SquaredDifference, From<left, right>, To<distance>>,
    Apply<nn::Linear<1>, From<distance>, To<same>>,
    Output<same>> {};
// clang-format on
// [end]

TEST_CASE("the guide's graphs have the gradients of finite differences", "[guide]") {
  CHECK(sk::check_gradients<WithSkip, sk::Shape<8>>());
  CHECK(sk::check_gradients<TwoInputs, TwoInputs::input>());
  CHECK(sk::check_gradients<Siamese, sk::Shape<24>>());
  using Gated = nn::Graph<nn::Input<in>, nn::Apply<nn::Linear<5>, nn::From<in>, nn::To<hidden>>,
                          nn::Apply<nn::Linear<5>, nn::From<in>, nn::To<body>>,
                          nn::Apply<Gate, nn::From<hidden, body>, nn::To<out>>, nn::Output<out>>;
  CHECK(sk::check_gradients<Gated, sk::Shape<4>>());
}
TEST_CASE("the guide's Siamese network is the same for a pair and for the pair turned round", "[guide]") {
  sk::Model<Siamese, sk::Shape<24>> model{sk::Seed{1}};
  CHECK(model.parameter_count == 12 * 16 + 16 + 16 * 4 + 4 + 4 + 1);
  sk::Predictor predictor{model, {.capacity = 2, .threads = 1}};
  sk::Tensor<float, 2> pairs = sk::uniform<float>(sk::Seed{2}, sk::dims(2, 24));
  pairs(1, sk::range(0, 12)) = sk::eval(pairs(0, sk::range(12, 24)));
  pairs(1, sk::range(12, 24)) = sk::eval(pairs(0, sk::range(0, 12)));
  const sk::Tensor<float, 2> outputs = predictor.predict(pairs);
  CHECK(outputs(0, 0) == outputs(1, 0));
}
TEST_CASE("the guide's graph has names by number", "[guide]") {
  std::string names;
  for (const auto& p : WithSkipModel::program.parameters())
    names += std::string(std::string_view(WithSkipModel::program.name(p))) + " ";
  CHECK(names == "0.weight 0.bias 1.0.weight 1.0.bias 1.2.weight 1.2.bias 3.weight 3.bias ");
}
