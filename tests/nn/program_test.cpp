// SPDX-License-Identifier: Apache-2.0
// Names of parameters: what a Repeat splices is named as if written out; bodies, shortcuts, branches and labels have theirs.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/nn/linear.hpp>
#include <skein/nn/program.hpp>
#include <skein/nn/tanh.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {

template <class Net> std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const sk::plan::Entry& e : nn::program<Net, sk::Shape<4>>.parameters())
    all.emplace_back(std::string_view(nn::program<Net, sk::Shape<4>>.name(e)));
  return all;
}
template <class Net> constexpr std::uint64_t hash = sk::plan::fingerprint(nn::program<Net, sk::Shape<4>>);

using Four = nn::Linear<4, sk::NoBias>;
using Block = nn::Sequential<Four, nn::Tanh>;
struct Head : nn::Sequential<nn::Linear<2>> {
  static constexpr std::string_view label = "head";
};

using Spliced = nn::Sequential<Four, nn::Repeat<3, Block>, nn::Linear<2>>;
using Written = nn::Sequential<Four, Block, Block, Block, nn::Linear<2>>;

}  // namespace

TEST_CASE("a Repeat has the names of its blocks written out", "[nn]") {
  CHECK(names<Spliced>() == std::vector<std::string>{"0.weight", "1.0.weight", "2.0.weight", "3.0.weight", "4.weight", "4.bias"});
  CHECK(names<Spliced>() == names<Written>());
  STATIC_REQUIRE(hash<Spliced> == hash<Written>);
}

TEST_CASE("bodies, shortcuts, branches and labels are in the names", "[nn]") {
  CHECK(names<nn::Sequential<nn::Residual<Block, Four>, nn::Concat<Four, Block>, Head>>() ==
        std::vector<std::string>{"0.body.0.weight", "0.shortcut.weight", "1.0.weight", "1.1.0.weight", "head.0.weight",
                                 "head.0.bias"});
}

TEST_CASE("fingerprints differ where networks do", "[nn]") {
  STATIC_REQUIRE(hash<Spliced> != hash<nn::Sequential<Four, nn::Repeat<2, Block>, nn::Linear<2>>>);
  STATIC_REQUIRE(hash<Block> != hash<nn::Sequential<Four>>);  // a layer without parameters counts
  STATIC_REQUIRE(hash<nn::Sequential<nn::Linear<4>>> != hash<nn::Sequential<Four>>);
}

// The suite gives this file to clang++ too.
TEST_CASE("a fingerprint is the same whatever compiler built it", "[nn]") {
  STATIC_REQUIRE(hash<Spliced> == 16468962899717648795u);
  STATIC_REQUIRE(sk::plan::fingerprint(
                     nn::program<nn::Sequential<nn::Residual<Block, Four>, nn::Concat<Four, Block>, Head>, sk::Shape<4>>) ==
                 15399570753364199382u);
}
