// SPDX-License-Identifier: Apache-2.0
// What a device's kernels want comes from the operations of that device: the rewriting finds every layer in every container, and
// names, tables and summaries stay the user's.
#include <catch2/catch.hpp>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/summary.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
/// A device without libraries: what no operation says anything of.
struct Elsewhere {
  static constexpr std::string_view name = "Elsewhere";
};
template <class L> using There = nn::OnDevice<L, Elsewhere>;
constexpr sk::Extents wide{1, {512}}, image{3, {8, 8, 4}};
using Net = nn::Sequential<nn::Linear<600>, nn::Linear<512>, nn::Relu, nn::Repeat<2, nn::Linear<512>>,
                           nn::Residual<nn::Sequential<nn::Linear<512>>>, nn::Concat<nn::Linear<512>, nn::Linear<4>>>;
using Rewritten = nn::Fused<Net, Elsewhere>;
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 1>, There<nn::Linear<512>>>);
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 2>, nn::Relu>, "which wants nothing anywhere");
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 3>, nn::Repeat<2, There<nn::Linear<512>>>>);
static_assert(std::is_same_v<sk::TypeAt<Rewritten::children, 4>::body, nn::Sequential<There<nn::Linear<512>>>>);
static_assert(std::is_same_v<sk::TypeAt<sk::TypeAt<Rewritten::children, 5>::branches, 1>, There<nn::Linear<4>>>);
static_assert(std::is_same_v<nn::Fused<nn::LayerNorm<>, sk::Cpu>, nn::LayerNorm<>>, "the host has what layers ask by default");

// On the host each wants what its operation says; elsewhere, where none says anything, nothing.
static_assert(nn::needs_of<nn::Linear<512>>(wide).splits_gradients && !nn::needs_of<nn::Linear<80>>({1, {80}}).splits_gradients);
static_assert(nn::needs_of<nn::Linear<80>>({1, {80}}).packed_weights == sk::ops::dense_packed_weights(80, 80));
static_assert(nn::needs_of<nn::Linear<512>>(wide).workspace == sk::ops::dense_workspace(512, 512));
static_assert(nn::needs_of<nn::LayerNorm<>>(wide).workspace == 1024 && nn::needs_of<nn::BatchNorm<>>(image).workspace > 0);
using Conv = nn::Conv2d<16, sk::Kernel<3>>;
static_assert(nn::needs_of<Conv>(image).packed_weights == sk::ops::conv2d_packed_weights(Conv::geometry(image)));
constexpr nn::MemoryRequirements here = nn::analyze<nn::Fused<Net, sk::Cpu>>(wide), there = nn::analyze<Rewritten>(wide);
static_assert(here.workspace > 0 && there.workspace == 0 && there.packed_weights == 0);
static_assert(here.stored == there.stored && here.flops == there.flops && here.layer_nodes == there.layer_nodes);

/// A layer with wishes of its own, for each device.
struct Wishful : nn::Linear<512> {
  template <class Device> static constexpr sk::KernelNeeds needs(sk::Extents) {
    return {.packed_weights = sk::on_host<Device> ? 77 : 5, .workspace = 88};
  }
  template <class In, class Frame> static constexpr std::string_view kernel() { return "wishes"; }
};
static_assert(nn::analyze<Wishful>(wide).packed_weights == 80 && nn::analyze<Wishful>(wide).workspace == 88);
static_assert(nn::analyze<There<Wishful>>(wide).packed_weights == 16);
static_assert(nn::HasPackWeights<There<Wishful>> && nn::Layer<There<Wishful>>);
}  // namespace

TEST_CASE("What kernels want is no part of names, tables and summaries", "[nn]") {
  using Model = sk::Model<nn::Sequential<nn::Linear<600>, Wishful>, sk::Shape<512>>;
  CHECK(Model::program.name(Model::program.layers()[1]) == "1");
  CHECK(Model::parameter("1.weight").extents == sk::Extents{2, {600, 512}});
  const std::string text = sk::summary<Model>();
  CHECK(text.find("Wishful") != text.npos);
  CHECK(text.find("wishes") != text.npos);
  CHECK(text.find("OnDevice") == text.npos);
}
