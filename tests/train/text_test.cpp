// SPDX-License-Identifier: Apache-2.0
#include <skein/train/text.hpp>

#include <catch2/catch.hpp>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace skein::train;

template <class F> static std::string text_of(F append) {
  std::string text = ">";
  append(text);
  return text;
}

TEST_CASE("numbers as text") {
  CHECK(text_of([](auto& t) { append_number(t, 0.1); }) == ">0.1");
  CHECK(text_of([](auto& t) { append_number(t, std::nan("")); }) == ">");
  CHECK(text_of([](auto& t) { append_number(t, 1.0 / 3); }) == ">0.3333333333333333");
  CHECK(text_of([](auto& t) { append_integer(t, std::numeric_limits<std::int64_t>::min()); }) == ">-9223372036854775808");
  CHECK(text_of([](auto& t) { append_fixed(t, 2.345, 1); }) == ">2.3");
  CHECK(text_of([](auto& t) { append_fixed(t, 1e300, 3); }) == ">1.000e+300");
  CHECK(text_of([](auto& t) { append_fixed(t, -999999999999999.0, 6); }) == ">-999999999999999.000000");
  CHECK(text_of([](auto& t) { append_digits(t, 0.0251345, 4); }) == ">0.02513");
  CHECK(text_of([](auto& t) { append_digits(t, std::nan(""), 4); }) == ">nan");
}

TEST_CASE("any double reads back from its text") {
  for (const double value : {1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789}) {
    const std::string text = text_of([&](auto& t) { append_number(t, value); });
    CHECK(std::strtod(text.c_str() + 1, nullptr) == value);
  }
}

TEST_CASE("fields of CSV are escaped") {
  CHECK(text_of([](auto& t) { append_csv_field(t, "plain name"); }) == ">plain name");
  CHECK(text_of([](auto& t) { append_csv_field(t, "a,\"b\"\n"); }) == ">\"a,\"\"b\"\"\n\"");
}
