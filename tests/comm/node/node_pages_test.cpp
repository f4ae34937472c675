// SPDX-License-Identifier: Apache-2.0
// Pages of several ranks, all of them mapped by one process.
#include "skein/comm/node/node_pages.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <memory>

#include "skein/device/kept_memory.hpp"

namespace sk = skein;
using sk::comm::NodePages;
using sk::comm::OpenBy;

namespace {
struct Two {
  Two() {
    REQUIRE(first.make(text, GENERATE(OpenBy::descriptor, OpenBy::name)));
    REQUIRE((first.map(text) && second->map(text)));
    sk::comm::forget_shared_file(text);
  }
  sk::comm::SharedFileText text = "";
  NodePages first{0, 2, 10000};
  std::unique_ptr<NodePages> second = std::make_unique<NodePages>(1, 2, 10000);
};
}  // namespace

TEST_CASE("a rank's part is where the others see it, whole pages, zeroed") {
  Two two;
  CHECK((two.first.stride() >= 10000 && two.first.stride() % 4096 == 0));
  CHECK((two.second->own()[0] == 0 && two.second->own()[9999] == 0));
  std::strcpy(two.first.part(1) + 5000, "seen");
  CHECK(std::strcmp(two.second->own() + 5000, "seen") == 0);
  CHECK(two.first.holds(two.first.own(), 10000));
  CHECK_FALSE(two.first.holds(two.first.own() + 1, two.first.stride()));
  CHECK_FALSE(two.first.holds(two.first.part(1), 1));
  CHECK_FALSE(two.first.holds(two.first.own(), ~std::size_t{0}));
}

TEST_CASE("what was withdrawn keeps its values and its address, and others write beside it") {
  Two two;
  char* const own = two.second->own();
  std::strcpy(own, "mine");
  two.second->withdraw();
  two.second->withdraw();
  CHECK(two.second->own() == own);
  CHECK(std::strcmp(own, "mine") == 0);
  std::strcpy(two.first.part(1), "late");
  CHECK(std::strcmp(own, "mine") == 0);
  std::strcpy(own, "anew");
  CHECK(std::strcmp(two.first.part(1), "late") == 0);
}

TEST_CASE("pages in which a call of MPI is left stay; others end") {
  Two two;
  char* const own = two.second->own();
  CHECK(sk::KeptMemory::holds(own, 10000));
  sk::KeptMemory::keep(own);
  two.second.reset();
  own[9999] = 3;  // still there
  CHECK(own[9999] == 3);
  CHECK_FALSE(two.first.holds(own, 1));
}

TEST_CASE("no name, no pages") {
  NodePages none(0, 2, 4096), huge(0, 2, ~std::size_t{0});
  sk::comm::SharedFileText text = "left";
  CHECK_FALSE(none.map(""));
  CHECK_FALSE(none.map("/skein-that-nobody-made"));
  CHECK_FALSE(huge.make(text, OpenBy::descriptor));
  CHECK(text[0] == 0);
}
