// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/mpi/call_history.hpp"

#include <catch2/catch.hpp>

namespace sk = skein;
using namespace sk::comm;
using Catch::Matchers::Contains;

namespace {
Signature sum_of(std::uint64_t count, std::uint8_t reduction = 1) {
  return {Collective::AllReduce, 1, reduction, 0, 0, sizeof(float), count, 0};
}
CallHistory history(std::uint64_t calls, std::uint64_t odd = ~std::uint64_t{0}) {
  CallHistory h;
  for (std::uint64_t i = 0; i < calls; ++i) h.add(sum_of(i % 7, i == odd ? 3 : 1));
  return h;
}
}  // namespace

TEST_CASE("equal histories do not differ, however far one is ahead") {
  const std::uint64_t own = GENERATE(0u, 1u, 63u, 64u, 65u, 300u, 1000u);
  for (const std::uint64_t other : {0u, 1u, 10u, 64u, 90u, 299u, 700u, 1000u, 1010u})
    CHECK_FALSE(history(own).difference(history(other).recent(), 1, 0).has_value());
}

TEST_CASE("the first call that differs is named, the lower rank first") {
  const std::string text = history(20, 12).difference(history(18).recent(), 3, 2).value();
  CHECK(text ==
        "collective call 12 differs between ranks: rank 2: all_reduce(Max) of 5 float; rank 3: all_reduce(Sum) of 5 float. "
        "Every rank must make the same calls in the same order");
  CHECK(history(18).difference(history(20, 12).recent(), 2, 3).value() == text);
  CHECK(history(20).difference(history(1, 0).recent(), 1, 0).has_value());
}

TEST_CASE("a difference before the calls that are shown is seen by the hash") {
  CHECK_THAT(history(100, 3).difference(history(100).recent(), 1, 0).value(), Contains("collective calls before call 36 differ"));
}

TEST_CASE("what lies ahead, too far back, or makes no sense is passed over") {
  CHECK_FALSE(history(5).difference(history(88, 3).recent(), 1, 0).has_value());    // shown from call 24 on
  CHECK_FALSE(history(600, 9).difference(history(20).recent(), 1, 0).has_value());  // no longer remembered
  RecentCalls forged = history(20).recent();
  forged.shown = 1000;
  forged.calls = 3;
  CHECK_FALSE(history(20).difference(forged, 1, 0).has_value());
}
