// SPDX-License-Identifier: Apache-2.0
// Collectives that do not match, over threads and over a coordinator: each case is named on every rank. Over MPI:
// tests/distributed/mismatched_calls.cpp.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/comm/control/control_comm.hpp>
#include <skein/comm/messages.hpp>
#include <skein/comm/thread/spawn.hpp>

#include "../../bench/support/mismatched_calls.hpp"

namespace sk = skein;

namespace {
sk::CommOptions within(double seconds) {
  sk::CommOptions o;
  o.deadline = seconds;
  return o;
}
const auto spawn = [](int n, auto&& f) { sk::spawn(n, f, within(20)); };
}  // namespace

TEST_CASE("calls of thread ranks that do not match are named, the same on all, and those of a rank that leaves or throws") {
  int cases = 0;
  for (const int ranks : {2, 3, 4})
    for (const bench::MismatchedCalls& c : bench::MismatchedCalls::all(ranks)) {
      const auto told = bench::told_of(c, spawn, [](sk::ThreadComm& t) -> sk::ThreadComm& { return t; });
      CHECK(told.fault(c, 12) == "");  // 0.05 s on an idle machine; bench reliability asks for 1
      ++cases;
    }
  CHECK(cases >= 150);
}

TEST_CASE("calls over a coordinator that do not match are named, the same on all, and those of a rank that leaves or throws") {
  for (const int ranks : {2, 3, 4})
    for (const bench::MismatchedCalls& c : bench::MismatchedCalls::all(ranks)) {
      const auto told = bench::told_of(c, spawn, [](sk::ThreadComm& t) { return sk::ControlComm::over(t, 20); });
      CHECK(told.fault(c, 12) == "");  // 0.05 s on an idle machine; bench reliability asks for 1
    }
}
