// SPDX-License-Identifier: Apache-2.0
// Views with static extents: broadcasting, layouts, and how far a loop goes.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/tensor/functions.hpp>
#include <skein/tensor/static_view.hpp>

namespace sk = skein;
namespace in = skein::detail;
using in::Reach;

namespace {
using Image = sk::SampleLayout<2, 3, 5>;
template <class Layout> using View = sk::StaticView<const double, double, sk::Cpu, Layout>;
}  // namespace

TEST_CASE("Extents broadcast from the last one", "[tensor]") {
  STATIC_REQUIRE(sk::broadcast_extents({2, {3, 5}}, {1, {5}}) == sk::Extents{2, {3, 5}});
  STATIC_REQUIRE(sk::broadcast_extents({2, {3, 1}}, {3, {2, 1, 4}}) == sk::Extents{3, {2, 3, 4}});
  STATIC_REQUIRE(sk::broadcast_extents({}, {1, {5}}) == sk::Extents{1, {5}});
  STATIC_REQUIRE(sk::broadcast_extents({1, {4}}, {1, {5}}).rank == -1);
  using Columns = sk::ParameterLayout<2, 1, 5>;
  using Rows = sk::ParameterLayout<3, 5>;
  STATIC_REQUIRE(in::broadcast_row<Columns, sk::Shape<2, 3, 5>>(4) == Columns::pitch);  // row (1, 0) for (1, 1)
  STATIC_REQUIRE(in::broadcast_row<Rows, sk::Shape<2, 3, 5>>(5) == 2 * Rows::pitch);    // row 2 for (1, 2)
}

TEST_CASE("How far an operand goes on without a step is known from its layout", "[tensor]") {
  STATIC_REQUIRE(in::reach_of<Image>(Image::extents) == Reach::batch);
  STATIC_REQUIRE(in::reach_of<sk::ParameterLayout<1>>(Image::extents) == Reach::batch);
  STATIC_REQUIRE(in::reach_of<sk::ParameterLayout<20>>({1, {20}}) == Reach::padded);
  STATIC_REQUIRE(in::reach_of<sk::ParameterLayout<2, 3, 4>>({3, {2, 3, 4}}) == Reach::sample);  // rows of 4 have no gaps
  STATIC_REQUIRE(in::reach_of<sk::ParameterLayout<2, 3, 5>>({3, {2, 3, 5}}) == Reach::row);
  STATIC_REQUIRE(in::reach_of<sk::ParameterLayout<5>>(Image::extents) == Reach::row);
  STATIC_REQUIRE(in::reach_of<sk::SampleLayout<1, 5>>({1, {5}}) == Reach::sample);  // dense beside padded rows
}

TEST_CASE("Trees with static extents are made of integers", "[tensor]") {
  std::vector<double> x(30, 1), w(16, 2);
  const auto e = tanh(View<Image>(x.data(), 1)) * View<sk::ParameterLayout<5>>(w.data()) - 1;
  STATIC_REQUIRE(std::is_trivially_copyable_v<decltype(e)>);
  STATIC_REQUIRE(decltype(e)::extents == Image::extents);
  STATIC_REQUIRE(decltype(e)::batched);
  CHECK(e.samples() == 1);
}
