// SPDX-License-Identifier: Apache-2.0
#include <skein/core/shape.hpp>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("shapes are types, extents are values") {
  using S = sk::Shape<28, 28, 1>;
  static_assert(S::rank == 3 && S::count == 784 && S::extents == sk::Extents{3, {28, 28, 1}});
  static_assert(S::extents.image() && !S::extents.flat() && S::extents.channels() == 1);
  static_assert(sk::Shape<10>::extents.flat() && sk::Shape<10>::extents.last() == 10);
  static_assert(std::is_same_v<sk::MakeShape<3, 28, 28, 1, 0>::type, S>);
  static_assert(std::is_same_v<sk::MakeShape<1, 7, 0, 0, 0>::type, sk::Shape<7>>);
  CHECK(sk::Extents{}.count() == 1);
  CHECK_FALSE(sk::Extents{1, {5}} == sk::Extents{2, {5, 1}});
  constexpr int most = 0x7fffffff;
  static_assert(sk::Extents{4, {most, most, most, most}}.count() == sk::Extents{3, {most, most, most}}.count());  // no overflow
  static_assert(sk::Extents{2, {most, most}}.count() == 1L * most * most / 2 || sk::Extents{2, {most, most}}.count() > 1L << 60);
  static_assert(sk::Extents{4, {0, most, most, most}}.count() == 0 && sk::Extents{4, {most, most, most, 0}}.count() == 0);
}

TEST_CASE("a row's pitch is whole vectors, and never a multiple of 512") {
  for (long n = 1; n <= 4096; ++n) {
    const long p = sk::row_pitch(n);
    INFO("row of " << n << ", pitch " << p);
    CHECK(p >= n);
    CHECK(p < n + 32);
    if (n > 8) {
      CHECK(p % 16 == 0);
      CHECK(p % 512 != 0);
    }
    CHECK(sk::row_pitch(p) == p);  // padding a padded row changes nothing
  }
  CHECK(sk::row_pitch(1) == 1);
  CHECK(sk::row_pitch(5) == 8);
  CHECK(sk::row_pitch(512) == 528);
}

TEST_CASE("samples and parameters are stored with padded rows, images dense") {
  CHECK(sk::sample_pitch({1, {10}}) == 16);
  CHECK(sk::sample_pitch({3, {5, 5, 3}}) == 75);
  CHECK(sk::stored_count({2, {84, 10}}) == 84 * 16);
  CHECK(sk::stored_count({1, {6}}) == 8);
  CHECK(sk::stored_count({4, {5, 5, 6, 16}}) == 5 * 5 * 6 * 16);
  CHECK(sk::stored_count({}) == 0);
}

TEST_CASE("the I-th type of a list") {
  using L = sk::List<int, float, int, double>;
  static_assert(L::size == 4);
  static_assert(std::is_same_v<sk::TypeAt<L, 0>, int> && std::is_same_v<sk::TypeAt<L, 1>, float>);
  static_assert(std::is_same_v<sk::TypeAt<L, 2>, int> && std::is_same_v<sk::TypeAt<L, 3>, double>);
  SUCCEED();
}
