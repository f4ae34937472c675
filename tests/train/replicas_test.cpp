// SPDX-License-Identifier: Apache-2.0
// A bit of a weight that flips on one rank is found after that step, and named; bench reliability has 500 of them.
#include "skein/train/replicas.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>

#include "../../bench/support/flipped_bits.hpp"

TEST_CASE("a flipped bit of a weight is found after its step: its parameter, and of three and four ranks the one that differs",
          "[train]") {
  const int ranks = GENERATE(3, 4);
  for (std::uint64_t trial = 0; trial < 15; ++trial) {
    const bench::FlippedBit flipped(trial, ranks);
    const std::string text = flipped.said();
    CAPTURE(text, flipped.parameter, flipped.rank, flipped.step);
    CHECK(flipped.named_by(text));
  }
  CHECK(bench::FlippedBit(0, ranks).said(false).empty());
}

TEST_CASE("of two ranks neither is said to be right", "[train]") {
  const bench::FlippedBit flipped(1, 2);
  const std::string text = flipped.said();
  CHECK_THAT(text, Catch::Contains(flipped.parameter + " is ") && Catch::Contains("on rank 0") && Catch::Contains("on rank 1"));
  CHECK_THAT(text, !Catch::Contains("most ranks"));
}
