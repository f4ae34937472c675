// SPDX-License-Identifier: Apache-2.0
#include <skein/device/copy.hpp>
#include <skein/device/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "../support/resident.hpp"

namespace sk = skein;

TEST_CASE("an arena is aligned, zero, and moves") {
  static_assert(!std::is_copy_constructible_v<sk::Arena<float>>);
  for (std::size_t n : {1u, 15u, 1000u}) {
    sk::Arena<float> a(n);
    CHECK(a.size() == n);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
    for (float x : a.span()) CHECK(x == 0);
    a.data()[n - 1] = 3;
    const float* was = a.data();
    sk::Arena<float> b(std::move(a));
    CHECK(b.data() == was);
    CHECK(a.data() == nullptr);
    CHECK(a.size() == 0);
    sk::Arena<float> c = b.copy();
    CHECK(c.data() != b.data());
    CHECK(c.data()[n - 1] == 3);
    b.clear();
    CHECK(b.data()[n - 1] == 0);
    CHECK(c.data()[n - 1] == 3);
    b = std::move(c);
    CHECK(b.data()[n - 1] == 3);
  }
  CHECK(sk::Arena<float>().data() == nullptr);
  CHECK(sk::Arena<float>(0).data() == nullptr);
}

namespace {
/// What the system says of the pages around p: the flags of /proc/self/smaps.
std::string flags_of_pages(const void* p) {
  std::ifstream file("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= at && at < end;
    else if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}
}  // namespace

TEST_CASE("an arena from 2 MiB on has large pages, where the system knows them") {
  constexpr std::size_t large = 2 * 1024 * 1024;
  for (const std::size_t bytes : {large - 64, large, large + 64, 3 * large}) {
    sk::Arena<std::uint8_t> a(bytes);
    CAPTURE(bytes, flags_of_pages(a.data()));
    CHECK(a.data()[bytes - 1] == 0);
    if (bytes < large) continue;
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % large == 0);
    if (std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good())
      CHECK(flags_of_pages(a.data()).find(" hg ") != std::string::npos);
  }
}

TEST_CASE("zeros that are given back take no memory in whole large pages, are read as zeros, and can be written") {
  constexpr std::size_t large = 2 * 1024 * 1024, edge = 4096;
  sk::Arena<char> a(4 * large);
  std::fill_n(a.data(), a.size(), 'x');
  CHECK(sk::Memory<sk::Cpu>::clear_and_give_back(a.data() + edge, 3 * large) == 2 * large);
  CHECK(support::resident_bytes(a.data() + large, 2 * large) == 0);
  CHECK(support::resident_bytes(a.data(), large) == large);
  CHECK(support::resident_bytes(a.data() + 3 * large, large) == large);
  CHECK(std::count(a.data(), a.data() + a.size(), '\0') == 3 * large);
  CHECK(std::count(a.data(), a.data() + edge, 'x') == edge);
  a.data()[large + 5] = 'y';
  CHECK(std::count(a.data() + large, a.data() + 3 * large, 'y') == 1);
  CHECK(sk::Memory<sk::Cpu>::clear_and_give_back(a.data(), 0) == 0);
  CHECK(sk::Memory<sk::Cpu>::clear_and_give_back(a.data(), large - 1) == 0);
  CHECK(std::count(a.data(), a.data() + large, '\0') == large);
}

TEST_CASE("copies between arrays of the host move bytes, overlapping or none") {
  std::vector<int> v{1, 2, 3, 4, 5}, w(5);
  sk::Copy<sk::Cpu, sk::Cpu>::run(w.data(), v.data(), 5 * sizeof(int));
  CHECK(w == v);
  sk::Copy<sk::Cpu, sk::Cpu>::run(v.data() + 1, v.data(), 4 * sizeof(int));
  CHECK(v == std::vector<int>{1, 1, 2, 3, 4});
  sk::Copy<sk::Cpu, sk::Cpu>::run(nullptr, nullptr, 0);
}

TEST_CASE("memory that is not to be had is a MemoryError, and no count of bytes wraps") {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS(sk::Arena<float>(all / 4 + 2), sk::MemoryError);  // whose bytes would be 8
  CHECK_THROWS_AS(sk::Arena<char>(all), sk::MemoryError);
  try {
    sk::Arena<double> a(std::size_t{1} << 57);
    FAIL("it is there");
  } catch (const sk::MemoryError& e) {
    CHECK(e.bytes() == std::size_t{1} << 60);
    CHECK_THAT(e.what(), Catch::Contains("1152921504606846976 bytes for one array are not to be had"));
  }
}
