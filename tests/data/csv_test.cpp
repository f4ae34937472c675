// SPDX-License-Identifier: Apache-2.0
#include <skein/data/csv.hpp>

#include <skein/core/random.hpp>

#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace data_test;
using sk::data::CsvOptions;
using sk::data::Header;
using sk::data::parse_csv;

namespace {
Thrown fault_of(const std::string& text, CsvOptions options = {}) {
  return thrown([&] { parse_csv(text, "t.csv", options); });
}
}  // namespace

TEST_CASE("a table with a header, quotes, spaces, signs and both line ends") {
  const auto t = parse_csv(
      "\xEF\xBB\xBF"
      "area, \"price, in \"\"k\"\"\",rooms\r\n1.5,+2e2, -3\r\n\n\"4\", 5 ,6.25\n\n",
      "t.csv");
  CHECK(t.names == std::vector<std::string>{"area", "price, in \"k\"", "rooms"});
  CHECK(t.rows == 2);
  CHECK(t.values == std::vector<double>{1.5, 200, -3, 4, 5, 6.25});
  CHECK(t.column("rooms") == 2);
  CHECK(thrown([&] { t.column("size"); }).text == "t.csv has no column \"size\"; it has: area, price, in \"k\", rooms");
}

TEST_CASE("the header is found, or as the options say") {
  CHECK(parse_csv("1,2\n3,4", "t").rows == 2);
  CHECK(parse_csv("1,2\n3,4", "t").names == std::vector<std::string>{"0", "1"});
  CHECK(parse_csv("1,2\n3,4", "t", {.header = Header::present}).rows == 1);
  CHECK(parse_csv("a,2\n3,4", "t").names == std::vector<std::string>{"a", "2"});
  CHECK(fault_of("a,2\n3,4", {.header = Header::absent}).text ==
        "t.csv (byte 0): line 1: \"a\" is not a number, and the options say that there is no header");
  CHECK(parse_csv("1;2\n", "t", {.separator = ';'}).columns() == 2);
  CHECK(parse_csv("1\t2\n3\t4\n", "t", {.separator = '\t'}).values == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("what is no table of numbers is refused by line and byte") {
  CHECK(fault_of("").text == "t.csv (byte 0): is empty: a table of numbers is wanted");
  CHECK(fault_of("a,b\n1,2\n1,x\n").text == "t.csv (byte 10): line 3: column 2 is \"x\", not a number");
  CHECK(fault_of("a,b\n1,2\n1\n").says("line 3: has 1 fields, the first line has 2"));
  CHECK(fault_of("a,b\n1,2,3\n").text == "t.csv (byte 8): line 2: has more than the 2 fields of the first line");
  CHECK(fault_of("a,b\n1,\n").says("line 2: column 2 is \"\", not a number"));
  CHECK(fault_of("a,b\n\"1,2\n3,4\n").text == "t.csv (byte 4): line 2: a quote is never closed");
  CHECK(fault_of("a,b\n\"1\"2,3\n").says("line 2: text follows a closing quote"));
  CHECK(fault_of("a\n1e999\n").says("\"1e999\", not a number"));
  CHECK(fault_of("a\nnan\n").says("not a number"));
  CHECK(fault_of("a\n0x10\n").says("not a number"));
  CHECK(fault_of("a\n+-1\n").says("not a number"));
  CHECK(fault_of(std::string("a\n1\0\n", 5)).says("\"1?\", not a number"));
  CHECK(fault_of("a\n" + std::string(100, 'z') + "\n").says(std::string(40, 'z') + "...\""));
  CHECK_THROWS_AS(parse_csv("1", "t", {.separator = '"'}), sk::ArgumentError);
}

TEST_CASE("a table becomes a data set by naming its target") {
  Folder folder;
  const auto path = folder.write("houses.csv", "area,price,rooms\n10,100,1\n20,200,2\n30,300,0\n");
  const auto table = sk::data::read_csv(path);
  const auto houses = table.dataset("price");
  CHECK(houses.size() == 3);
  CHECK(houses.sample_extents() == sk::Extents{1, {2}});
  CHECK(houses.target() == sk::data::Target::vector(1));
  const std::int64_t one[] = {1};
  float x[2], y[1];
  houses.gather(one, x, 2);
  houses.targets(one, y, 1);
  CHECK(x[0] == 20);
  CHECK(x[1] == 2);
  CHECK(y[0] == 200);
  const auto classes = table.labelled("rooms");
  CHECK(classes.target() == sk::data::Target::labels(3));
  CHECK(classes.label(2) == 0);
  CHECK(thrown([] { parse_csv("a,b\n1,1.5\n", "t").labelled("b"); }).says("column \"b\" has 1.5"));
  CHECK(thrown([] { parse_csv("a,b\n1,-1\n", "t").labelled("b"); }).says("a class number 0, 1, 2, ... is wanted"));
  CHECK_THROWS_AS(parse_csv("a\n1\n", "t").dataset("a"), sk::ArgumentError);
  CHECK(thrown([&] { sk::data::read_csv(path, {.limit = 10}); }).says("larger than the limit of 10 bytes"));
#if SKEIN_WITH_ZLIB
  const std::string text = "a,b\n1,2\n";
  CHECK(sk::data::read_csv(folder.write("t.csv.gz", gzipped(Bytes(text.begin(), text.end())))).at(0, 1) == 2);
#endif
}

TEST_CASE("tables cut at every length and with random bytes changed never do more than throw") {
  const std::string text = "a,\"b\"\"c\",d\r\n1,2,3\n\"4\",5e3,-6\n";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    try {
      const auto t = parse_csv(text.substr(0, n), "t");
      CHECK(t.values.size() == static_cast<std::size_t>(t.rows * t.columns()));
    } catch (const sk::FileError& e) { CHECK(e.offset() <= static_cast<long long>(n)); }
  }
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    std::string changed = text;
    changed[sk::random_below(2, trial, 0, text.size())] = static_cast<char>(sk::random_below(2, trial, 1, 256));
    try {
      const auto t = parse_csv(changed, "t");
      CHECK(t.values.size() == static_cast<std::size_t>(t.rows * t.columns()));
    } catch (const sk::FileError&) { ++refused; }
  }
  CHECK(refused > 500);
}
