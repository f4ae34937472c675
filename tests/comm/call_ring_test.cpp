// SPDX-License-Identifier: Apache-2.0
// A ring of calls: their order, its bounds, and that a complete call stays readable until its place is taken again.
#include "skein/comm/call_ring.hpp"

#include <catch2/catch.hpp>

namespace comm = skein::comm;

TEST_CASE("a ring of calls keeps their order over many rounds, and says when it is full") {
  comm::CallRing<int> calls;
  CHECK((calls.empty() && !calls.full()));
  int written = 0, read = 0;
  for (int round = 0; round < 5; ++round) {
    while (!calls.full()) {
      calls.next() = written++;
      CHECK(calls.push() == static_cast<std::uint64_t>(written));
    }
    CHECK(calls.started() - calls.complete() == calls.room);
    for (int i = 0; i < 40 + round; ++i) {
      CHECK(calls.oldest() == read++);
      calls.pop();
    }
    CHECK(calls.complete() == static_cast<std::uint64_t>(read));
    CHECK(calls[calls.complete() - 1] == read - 1);  // complete, and not yet written over
    CHECK(calls[calls.started() - 1] == written - 1);
  }
  while (!calls.empty()) {
    CHECK(calls.oldest() == read++);
    calls.pop();
  }
  CHECK(read == written);
}
