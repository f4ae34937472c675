// SPDX-License-Identifier: Apache-2.0
#include <skein/core/denormals.hpp>
#include <skein/core/workers.hpp>

#include <cfenv>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

namespace {
/// smallest normal / 2: denormal as a result, and again as an operand. Neither is known to the compiler.
float half_of(float x) {
  volatile float a = x, h = 0.5f;
  return a * h;
}
constexpr float smallest = std::numeric_limits<float>::min();
auto mode() { return sk::detail::FloatMode::get() & sk::detail::FloatMode::flush; }
bool flushes() { return half_of(smallest) == 0 && half_of(4 * half_of(half_of(smallest))) == 0; }
}  // namespace

TEST_CASE("denormals are zero within a scope, and what the caller had is back after it") {
  if (!sk::detail::FloatMode::exists) return;
  const auto before = mode();
  CHECK_FALSE(flushes());
  {
    const sk::DenormalScope scope(sk::Denormals::flush);
    CHECK(half_of(smallest) == 0);
    volatile float denormal = std::numeric_limits<float>::denorm_min();
    volatile float large = 1e30f;
    CHECK(denormal * large == 0);  // as an operand too
    {
      const sk::DenormalScope inner(sk::Denormals::keep);
      CHECK(half_of(smallest) > 0);
      CHECK(denormal * large > 0);
    }
    CHECK(half_of(smallest) == 0);
  }
  CHECK(mode() == before);
  CHECK_FALSE(flushes());
}

TEST_CASE("what arithmetic raises within a scope is raised after it") {
  std::feclearexcept(FE_ALL_EXCEPT);
  {
    const sk::DenormalScope scope(sk::Denormals::flush);
    volatile float zero = 0, one = 1, quotient = one / zero;
    (void)quotient;
  }
  CHECK(std::fetestexcept(FE_DIVBYZERO) != 0);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST_CASE("every worker of a region flushes, or keeps, whatever the caller does") {
  if (!sk::detail::FloatMode::exists) return;
  for (const bool caller : {false, true}) {
    const sk::DenormalScope scope(caller ? sk::Denormals::flush : sk::Denormals::keep);
    for (int count : {1, 2, 4})
      for (const sk::Denormals wanted : {sk::Denormals::flush, sk::Denormals::keep}) {
        sk::Workers workers(count, wanted);
        CHECK(workers.denormals() == wanted);
        std::vector<int> zero(static_cast<std::size_t>(count));
        const auto before = mode();
        for (int region = 0; region < 2; ++region) {
          workers.run([&](sk::Worker& w) { zero[static_cast<std::size_t>(w.index)] = half_of(smallest) == 0; });
          CHECK(zero == std::vector<int>(static_cast<std::size_t>(count), wanted == sk::Denormals::flush));
          CHECK(mode() == before);
        }
        CHECK_THROWS(workers.run([](sk::Worker& w) {
          if (w.index == 0) throw std::runtime_error("in a region");
          w.barrier();
        }));
        CHECK(mode() == before);
      }
  }
}
