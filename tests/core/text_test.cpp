// SPDX-License-Identifier: Apache-2.0
// Texts: every kind of value, in its place; what stands between stays as it is.
#include <skein/core/text.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sk = skein;

TEST_CASE("values stand where their places are", "[core]") {
  CHECK(sk::text("{}", 1) == "1");
  CHECK(sk::text("{} of {}: {}", 3, 4u, "late") == "3 of 4: late");
  CHECK(sk::text("{}{}{}", std::string("a"), std::string_view("b"), 'c') == "abc");
  CHECK(sk::text("a {} brace } and { stay, {}", 1, 2) == "a 1 brace } and { stay, 2");
  CHECK(sk::text("{} and {}", true, false) == "true and false");
}

namespace {
enum class Mode { slow, fast };
constexpr std::string_view name_of(Mode mode) { return mode == Mode::slow ? "slow" : "fast"; }
enum class Silent { one };
}  // namespace
static_assert(sk::detail::HasNames<Mode> && !std::is_constructible_v<sk::detail::TextValue, Silent>);

TEST_CASE("a value of an enumeration is the word that stands beside it", "[core]") {
  CHECK(sk::text("{} or {}", Mode::slow, Mode::fast) == "slow or fast");
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

TEST_CASE("words from outside are shown without what a terminal would obey", "[core]") {
  using namespace std::string_literals;
  CHECK(sk::printable("caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80 a\\b") == "caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80 a\\b");
  CHECK(sk::printable("\x1b[2J\x07\0\x7f"s) == R"(\x1b[2J\x07\x00\x7f)");
  CHECK(sk::printable("a\nb\tc") == R"(a\x0ab\x09c)");
  CHECK(sk::printable("a\nb\tc\r", sk::Lines::keep) == "a\nb\tc\\x0d");
  CHECK(sk::printable("\xc2\x9b"
                      "2J \xc2\xa0") == "\\xc2\\x9b2J \xc2\xa0");  // CSI as one character
  CHECK(sk::printable("x\xe2\x80\xaey \xe2\x81\xa6 \xe2\x80\x93") == "x\\xe2\\x80\\xaey \\xe2\\x81\\xa6 \xe2\x80\x93");
  for (const char* none : {"\x80", "\xff", "\xc0\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\xbc", "\xf5"})
    CHECK(sk::printable(none).substr(0, 2) == "\\x");
}

TEST_CASE("quoted words are cut, and not within a character", "[core]") {
  CHECK(sk::in_quotes("dense1") == "'dense1'");
  CHECK(sk::in_quotes("a\nb") == R"('a\x0ab')");
  CHECK(sk::in_quotes("postcode", '"', 4) == "\"post...\"");
  CHECK(sk::in_quotes("", '"', 40) == "\"\"");
  CHECK(sk::in_quotes(std::string(120, 'x')) == "'" + std::string(120, 'x') + "'");
  CHECK(sk::in_quotes(std::string(5000, 'x')) == "'" + std::string(120, 'x') + "...'");
  const std::string nearly(119, 'x');
  CHECK(sk::in_quotes(sk::text("{}{}", nearly, "\xe6\xbc\xa2")) == sk::text("'{}...'", nearly));
}

TEST_CASE("a list has its separator between its values alone", "[core]") {
  sk::TextList names;
  CHECK((names.empty() && names.text().empty() && names.or_words("none") == "none"));
  names.add("loss").add(3).add("");
  CHECK(names.text() == "loss, 3, ");
  CHECK((!names.empty() && names.or_words("none") == names.text()));
  CHECK(sk::TextList("; ").add("").add(true).text() == "; true");  // an empty value is one of the list
  CHECK(sk::joined(std::vector<long>{32, 10, 4}, " x ") == "32 x 10 x 4");
  CHECK(sk::joined(std::vector<std::string>{"one"}) == "one");
  CHECK(sk::joined(std::vector<int>{}) == "");
}
