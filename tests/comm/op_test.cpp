// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/op.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "skein/comm/collective_call.hpp"

namespace sk = skein;
struct Larger {
  float operator()(float a, float b) const { return a > b ? a : b; }
};
struct alignas(32) Wide {
  float x;
};
struct AddWide {
  Wide operator()(Wide a, Wide b) const { return {a.x + b.x}; }
};
static_assert(!sk::UserReduction<AddWide, Wide>);  // what comes from other ranks lies at multiples of 16 bytes
static_assert(sk::BuiltinReduction<sk::Mean> && !sk::BuiltinReduction<Larger>);
static_assert(sk::UserReduction<Larger, float> && !sk::UserReduction<Larger, std::string> && !sk::UserReduction<sk::Sum, float>);
static_assert(sk::Reduction<sk::Sum, double> && !sk::Reduction<sk::Sum, bool> && !sk::Reduction<int, float>);
static_assert(sk::Sum{}(std::numeric_limits<int>::max(), 1) == std::numeric_limits<int>::min());
static_assert(sk::Sum{}(std::int8_t{127}, std::int8_t{2}) == -127 && sk::Sum{}(-3L, 1L) == -2);
static_assert(sk::Mean{}(std::numeric_limits<int>::max(), 1) == std::numeric_limits<int>::min());

TEST_CASE("a mean of integers divides by more ranks than their type counts") {
  std::uint8_t small[] = {200, 255};
  sk::comm::finish_mean<std::uint8_t>(small, 2, 256);  // which is 0 in their type
  CHECK((small[0] == 0 && small[1] == 0));
  std::int8_t negative[] = {-128, 100};
  sk::comm::finish_mean<std::int8_t>(negative, 2, 128);  // which is -128
  CHECK((negative[0] == -1 && negative[1] == 0));
  std::uint64_t large = std::numeric_limits<std::uint64_t>::max();
  sk::comm::finish_mean<std::uint64_t>(&large, 1, 5);
  CHECK(large == std::numeric_limits<std::uint64_t>::max() / 5);
}

TEST_CASE("a NaN of any rank wins in Max and Min") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(sk::Max{}(nan, 1.0f)));
  CHECK(std::isnan(sk::Max{}(1.0f, nan)));
  CHECK(std::isnan(sk::Min{}(nan, 1.0f)));
  CHECK(std::isnan(sk::Min{}(1.0f, nan)));
}

TEST_CASE("a fold of any length and any number of sources and targets equals the loop") {
  for (const std::size_t n : {0u, 1u, 63u, 64u, 65u, 1000u})
    for (const int sources : {1, 2, 3, 5}) {
      std::vector<std::vector<float>> data(static_cast<std::size_t>(sources), std::vector<float>(n));
      std::vector<float> wanted(n), out(n, -1.0f);
      for (std::size_t i = 0; i < n; ++i) {
        for (int r = 0; r < sources; ++r) {
          float& x = data[static_cast<std::size_t>(r)][i] = 0.1f * static_cast<float>(r + 1) + static_cast<float>(i);
          wanted[i] = r ? wanted[i] + x : x;
        }
      }
      std::vector<const void*> from;
      for (auto& d : data) from.push_back(d.data());
      void* to[2] = {out.data(), data.back().data()};  // one target is a source
      sk::comm::fold<float, sk::Sum>("", to, 2, from.data(), sources, n);
      CHECK(out == wanted);
      CHECK(data.back() == wanted);
    }
}

TEST_CASE("slices cover everything once and begin on cache lines") {
  for (const std::size_t n : {0u, 1u, 15u, 16u, 100u, 12345u})
    for (const int ranks : {1, 2, 3, 7}) {
      std::size_t at = 0;
      for (int r = 0; r < ranks; ++r) {
        const sk::comm::Piece p = sk::comm::slice_of(n, 4, r, ranks);
        CHECK(p.offset == at);
        if (p.count) CHECK(p.offset % 16 == 0);
        at += p.count;
      }
      CHECK(at == n);
    }
}
