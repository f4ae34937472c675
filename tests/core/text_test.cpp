// SPDX-License-Identifier: Apache-2.0
// Texts: every kind of value, in its place; what stands between stays as it is.
#include <skein/core/text.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace sk = skein;

TEST_CASE("values stand where their places are", "[core]") {
  CHECK(sk::text("{}", 1) == "1");
  CHECK(sk::text("{} of {}: {}", 3, 4u, "late") == "3 of 4: late");
  CHECK(sk::text("{}{}{}", std::string("a"), std::string_view("b"), 'c') == "abc");
  CHECK(sk::text("a {} brace } and { stay, {}", 1, 2) == "a 1 brace } and { stay, 2");
  CHECK(sk::text("{} and {}", true, false) == "true and false");
}

TEST_CASE("what is put in is not looked into", "[core]") { CHECK(sk::text("{} {}", "{}", 5) == "{} 5"); }

TEST_CASE("numbers have all their digits, and no more", "[core]") {
  CHECK(sk::text("{} {}", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max()) ==
        "-9223372036854775808 18446744073709551615");
  CHECK(sk::text("{} {} {}", std::int8_t(-7), std::uint8_t(200), short(-3)) == "-7 200 -3");
  CHECK(sk::text("{} {} {}", 0.1, 0.1f, -2.0) == "0.1 0.1 -2");
  CHECK(sk::text("{}", std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
  CHECK(sk::text("{} {}", std::numeric_limits<double>::infinity(), 1e-300) == "inf 1e-300");
}
