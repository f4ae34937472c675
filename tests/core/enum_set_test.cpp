// SPDX-License-Identifier: Apache-2.0
// Sets of the values of an enumeration.
#include <skein/core/enum_set.hpp>

#include <catch2/catch.hpp>

namespace {
enum class Color { red, green, blue };
using Colors = skein::EnumSet<Color>;
constexpr Colors mixed{Color::red, Color::blue};
static_assert(mixed.has(Color::red) && !mixed.has(Color::green) && mixed.has(Color::blue));
static_assert((Colors{Color::red} | Colors{Color::blue}) == mixed && !(mixed == Colors{}));
static_assert(mixed - Color::red == Colors{Color::blue} && mixed - Color::green == mixed);
static_assert(mixed - Colors{Color::red, Color::blue} == Colors{});
}  // namespace

TEST_CASE("the last value that fits is a member of its own", "[core]") {
  enum class Many : unsigned { last = 31 };
  CHECK(skein::EnumSet<Many>{Many::last}.has(Many::last));
  CHECK_FALSE(skein::EnumSet<Many>{Many{30}}.has(Many::last));
}
