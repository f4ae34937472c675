// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include <skein/ops/dropout.hpp>

TEST_CASE("Dropout in vectors has the reference's masks, bit for bit", "[ops]") {
  for (const long n : {1L, 3L, 63L, 64L, 65L, 200L}) {
    const skein::ops::DropoutShape shape{3, n, n + 5, 0x123456789abcdefull, 0xfffffffeull};  // samples across 2^32
    std::vector<float> x(static_cast<std::size_t>(3 * (n + 5)), 1), fast(x.size(), 7), slow(x.size(), 7);
    for (const double rate : {0.0, 0.1, 0.5, 0.999, 1.0}) {
      skein::ops::dropout<skein::Cpu>(shape, rate, x.data(), fast.data());
      skein::ops::reference::dropout(shape, rate, x.data(), slow.data());
      CHECK(fast == slow);
    }
  }
}

TEST_CASE("Dropout's threshold covers the whole range of words", "[ops]") {
  STATIC_REQUIRE(skein::ops::dropout_threshold(0) == 0);
  STATIC_REQUIRE(skein::ops::dropout_threshold(1) == 0x100000000ull);
  STATIC_REQUIRE(skein::ops::dropout_threshold(0.5) == 0x80000000ull);
}
