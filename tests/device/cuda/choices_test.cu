// SPDX-License-Identifier: Apache-2.0
// What libraries choose at run time is written down, each sentence once, of each thread; detours can be refused.
#include <skein/device/cuda/choices.hpp>

#include <catch2/catch.hpp>
#include <thread>

#include <skein/core/error.hpp>

namespace sk = skein;

TEST_CASE("choices are kept once, detours first") {
  sk::cuda::Choices c;
  c.refuse_detours(false);
  CHECK(c.text().empty());
  c.note("algorithm 1");
  c.detour("no kernel, plain loops run");
  c.note("algorithm 1");
  CHECK(c.notes().size() == 1);
  CHECK(c.text() == "  detour: no kernel, plain loops run\n  algorithm 1\n");
}
TEST_CASE("a detour is an error where none is allowed") {
  sk::cuda::Choices c;
  c.refuse_detours();
  CHECK_THROWS_WITH(c.detour("no kernel"), Catch::Contains("no detour is allowed here: no kernel"));
  CHECK(c.detours().empty());
}
TEST_CASE("choices are a thread's, for the current device") {
  const std::string before = sk::cuda::choices().text();
  std::thread([] {
    CHECK(sk::cuda::choices().text().empty());
    sk::cuda::choices().note("of another thread");
  }).join();
  CHECK(sk::cuda::choices().text() == before);
}
