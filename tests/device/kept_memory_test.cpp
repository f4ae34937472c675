// SPDX-License-Identifier: Apache-2.0
#include "skein/device/kept_memory.hpp"

#include <catch2/catch.hpp>

#include <utility>

#include "skein/device/memory.hpp"

namespace sk = skein;

TEST_CASE("what arenas have is known while they live, and nothing else is") {
  const float* p = nullptr;
  float other[4] = {};
  {
    sk::Arena<float> a(100), b(1000);
    p = a.data();
    CHECK(sk::KeptMemory::holds(p, 400));
    CHECK(sk::KeptMemory::holds(p + 50, 200));
    CHECK_FALSE(sk::KeptMemory::holds(p, 100 * 1000));
    CHECK_FALSE(sk::KeptMemory::holds(other, sizeof other));
    const sk::Arena<float> moved = std::move(a);
    CHECK(sk::KeptMemory::holds(moved.data(), 400));
  }
  CHECK_FALSE(sk::KeptMemory::holds(p, 1));
}

TEST_CASE("memory that is kept stays when its arena ends") {
  float* p = nullptr;
  {
    sk::Arena<float> a(64);
    p = a.data();
    sk::KeptMemory::keep(p + 3);
  }
  CHECK(sk::KeptMemory::holds(p, 256));
  p[0] = 5;  // AddressSanitizer would object
  CHECK(p[0] == 5);
  CHECK(sk::Arena<float>(64).data() != p);
}

TEST_CASE("memory behind an arena is not the arena's") {
  alignas(64) static char block[128];
  sk::KeptMemory::add(block, 64);
  sk::KeptMemory::keep(block + 64);
  CHECK(sk::KeptMemory::remove(block));
}
