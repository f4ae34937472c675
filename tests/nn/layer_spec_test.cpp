// SPDX-License-Identifier: Apache-2.0
// What a layer of expressions says of itself, and what the library makes of it.
#include <catch2/catch.hpp>

#include <skein/nn/layer_spec.hpp>
#include <skein/nn/memory_requirements.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using namespace sk::literals;

namespace {
constexpr sk::LayerSpec spec(sk::Edge in) {
  return {.output = {in[0], 7},
          .parameters = {{"weight", {in.last(), 7}, sk::Init::kaiming_normal, in.last(), 7},
                         {"bias", {7}, sk::Init::zeros, 1, 1, false}},
          .backward_reads = sk::Reads::y};
}
// Of 12 or 16 features it has no description: it would divide by 0.
struct Dividing {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = {1 + 100 / ((in.last() - 12) * (in.last() - 16))}}; }
  static void forward(auto& f) { f.y() = 0; }
  static void backward(auto& f) { f.dx() = 0; }
};
// Whatever is no image it refuses by an exception.
struct OfImages {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    if (in.rank != 3) throw "images only";
    return {.output = in};
  }
  static void forward(auto& f) { f.y() = f.x(); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};
struct AtRunTime {
  static sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
  static void forward(auto& f) { f.y() = f.x(); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};
}  // namespace

TEST_CASE("A LayerSpec is a LayerInfo with names", "[nn]") {
  constexpr nn::LayerInfo info = spec(sk::Extents{2, {3, 5}}).info();
  STATIC_REQUIRE(info.output == sk::Extents{2, {3, 7}});
  STATIC_REQUIRE(info.entries() == 2);
  STATIC_REQUIRE(info.parameters[0].name == "weight");
  STATIC_REQUIRE(info.parameters[0].extents == sk::Extents{2, {5, 7}});
  STATIC_REQUIRE(info.parameters[0].fan_in == 5);
  STATIC_REQUIRE(!info.parameters[1].decay);
  STATIC_REQUIRE((!info.saves_input && info.saves_output));
  STATIC_REQUIRE(info.flops == 21);
  STATIC_REQUIRE(info.fault == nn::Fault::none);
}

TEST_CASE("Parameters are found by name, and are not more than a layer can have", "[nn]") {
  constexpr nn::ParameterList list = spec(sk::Extents{2, {3, 5}}).parameters;
  STATIC_REQUIRE(list.find("weight") == 0);
  STATIC_REQUIRE(list.find("bias") == 1);
  STATIC_REQUIRE(list.find("weigh") == -1);
  STATIC_REQUIRE(decltype("bias"_p)::name == "bias");
  constexpr sk::LayerSpec many{
      .output = {1},
      .parameters = {{"a", {1}}, {"b", {1}}, {"c", {1}}, {"d", {1}}, {"e", {1}}, {"f", {1}}, {"g", {1}}, {"h", {1}}, {"i", {1}}}};
  STATIC_REQUIRE(many.info().fault == nn::Fault::too_many_parameters);
  constexpr sk::LayerSpec refused{.output = {1}, .accepts = false};
  STATIC_REQUIRE(refused.info().fault == nn::Fault::own);
  constexpr sk::LayerSpec unnamed{.output = {1}, .parameters = {{"a", {1}}, {"", {1}}}};
  STATIC_REQUIRE(unnamed.info().fault == nn::Fault::parameter_names);
  constexpr sk::LayerSpec twice{.output = {1}, .parameters = {{"a", {1}}, {"b", {1}}, {"a", {2}}}};
  STATIC_REQUIRE(!twice.info().names_differ());
  STATIC_REQUIRE(spec(sk::Extents{2, {3, 5}}).info().names_differ());
}

TEST_CASE("A describe() that is a constant of some inputs alone is one", "[nn]") {
  STATIC_REQUIRE(nn::analyze<OfImages>(sk::Extents{3, {28, 28, 3}}).fault == nn::Fault::none);
  STATIC_REQUIRE(nn::analyze<Dividing>(sk::Extents{1, {4}}).fault == nn::Fault::none);
  STATIC_REQUIRE(nn::analyze<AtRunTime>(sk::Extents{1, {4}}).fault == nn::Fault::not_constexpr);
}
