// SPDX-License-Identifier: Apache-2.0
// A layer in another form: found by the rewriting in every container, and names, tables and summaries stay the user's.
#include <catch2/catch.hpp>

#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/bare.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/summary.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
// Wants private memory that its other form does not.
struct Wishful {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    sk::LayerInfo info = nn::Linear<512>::describe(in);
    info.packed_weights = 77;
    info.workspace = 88;
    info.splits_gradients = true;
    return info;
  }
  template <class In, class Frame> static void forward(Frame& f) { f.y[0] = 3; }
  template <class In, class Frame> static void backward(Frame& f) { f.dx[0] = 4; }
  template <class In, class Frame> static void pack_weights(Frame& f) { f.packed_weights[0] = 5; }
  template <class In, class Frame> static constexpr std::string_view kernel() { return "wishes"; }
};
struct Prepared : nn::Linear<3> {
  template <class In, class Frame> static void prepare(Frame&) {}
};
}  // namespace

namespace skein::inline SKEIN_ABI::nn {
template <> struct Fusion<Cpu, Wishful> { using type = Bare<Wishful>; };
}  // namespace skein::inline SKEIN_ABI::nn

namespace {
using Unit = nn::FusedLayer<nn::Bare<Wishful>, Wishful>;
using Net = nn::Sequential<nn::Linear<600>, Wishful, nn::Relu, nn::Repeat<2, Wishful>, nn::Residual<nn::Sequential<Wishful>>,
                           nn::Concat<Wishful, nn::Linear<4>>>;
using Rewritten = nn::Fused<Net, sk::Cpu>;
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 1>, Unit>);
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 3>, nn::Repeat<2, Unit>>);
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 4>::body, nn::Sequential<Unit>>);
static_assert(std::is_same_v<sk::TypeAt<sk::TypeAt<Rewritten::children, 5>::branches, 0>, Unit>);
static_assert(std::is_same_v<nn::Fused<Wishful, sk::Cpu>, Unit>);

constexpr sk::LayerInfo bare = nn::Bare<Wishful>::describe({1, {512}}), full = Wishful::describe({1, {512}});
static_assert(bare.packed_weights == 0 && bare.workspace == 0 && !bare.splits_gradients);
static_assert(bare.parameters[0].extents == full.parameters[0].extents && bare.stored_parameters() == full.stored_parameters());
static_assert(bare.saves_input == full.saves_input && bare.overwrites_gradients && bare.flops == full.flops);
static_assert(!nn::HasPackWeights<nn::Bare<Wishful>> && nn::HasPackWeights<Wishful>);
static_assert(!nn::HasPrepare<nn::Bare<Wishful>> && nn::HasPrepare<nn::Bare<Prepared>>);
static_assert(nn::Layer<nn::Bare<Wishful>>);
}  // namespace

TEST_CASE("A layer in another form: the summary, names and tables stay the user's") {
  using Model = sk::Model<Net, sk::Shape<512>>;
  STATIC_REQUIRE(nn::analyze<Model::fused>(sk::Shape<512>::extents).stored == Model::sizes.stored);
  CHECK(Model::program.name(Model::program.ops()[1]) == "1");
  CHECK(Model::parameter("1.weight").extents == sk::Extents{2, {600, 512}});
  const std::string text = sk::summary<Model>();
  CHECK(text.find("Wishful") != text.npos);
  CHECK(text.find("wishes") != text.npos);
  CHECK(text.find("Bare") == text.npos);
  CHECK(text.find("fused,") == text.npos);
  constexpr long packed_weights = nn::analyze<Model::fused>(sk::Shape<512>::extents).packed_weights;
  STATIC_REQUIRE(packed_weights == nn::analyze<nn::Linear<600>>(sk::Shape<512>::extents).packed_weights +
                                       nn::analyze<nn::Linear<4>>(sk::Shape<512>::extents).packed_weights);
}
TEST_CASE("A layer in another form runs as it is") {
  float y = 0, dx = 0;
  nn::Frame<float, sk::Cpu> f;
  f.y = &y;
  f.dx = &dx;
  nn::Bare<Wishful>::forward<sk::Shape<512>>(f);
  nn::Bare<Wishful>::backward<sk::Shape<512>>(f);
  CHECK((y == 3 && dx == 4));
}
