// SPDX-License-Identifier: Apache-2.0
#include <skein/data/csv.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include <skein/core/random.hpp>
#include <skein/data/csv_cursor.hpp>

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
  CHECK(t.names() == std::vector<std::string>{"area", "price, in \"k\"", "rooms"});
  CHECK(t.rows() == 2);
  CHECK(t.numbers("area") == std::vector<double>{1.5, 4});
  CHECK(t.numbers("price, in \"k\"") == std::vector<double>{200, 5});
  CHECK(t.numbers("rooms") == std::vector<double>{-3, 6.25});
  CHECK(t.column("rooms") == 2);
  CHECK(thrown([&] { t.column("size"); }).text == "t.csv has no column \"size\"; it has: area, price, in \"k\", rooms");
}

TEST_CASE("spaces within quotes belong to the field, and empty lines before the first count") {
  const auto t = parse_csv("a,b\n\" x \" , y \n\"1 \",2\n", "t.csv");
  CHECK(t.texts("a") == std::vector<std::string>{" x ", "1 "});
  CHECK(t.texts("b") == std::vector<std::string>{"y", "2"});
  CHECK(thrown([] { parse_csv("\n\n1,2\n3\n", "t"); }).says("line 4: has 1 fields, the first line has 2"));
  CHECK(thrown([] { parse_csv("\n\na,b\n3\n", "t"); }).says("line 4: has 1 fields, the first line has 2"));
}

TEST_CASE("the header is found, or as the options say") {
  CHECK(parse_csv("1,2\n3,4", "t").rows() == 2);
  CHECK(parse_csv("1,2\n3,4", "t").names() == std::vector<std::string>{"0", "1"});
  CHECK(parse_csv("1,2\n3,4", "t", {.header = Header::present}).rows() == 1);
  CHECK(parse_csv("a,2\n3,4", "t").names() == std::vector<std::string>{"a", "2"});
  CHECK(parse_csv("a,2\n3,4", "t", {.header = Header::absent}).texts("0") == std::vector<std::string>{"a", "3"});
  CHECK(parse_csv("1;2\n", "t", {.separator = ';'}).columns() == 2);
  CHECK(parse_csv("1\t2\n3\t4\n", "t", {.separator = '\t'}).numbers("1") == std::vector<double>{2, 4});
  CHECK(thrown([] { parse_csv("a,a\n1,2\n", "t").column("a"); }).says("t has two columns \"a\", 1 and 2"));
}

TEST_CASE("a header line of one field that another separator would part names the option") {
  const auto refused = [](const char* text) { return thrown([&] { parse_csv(text, "t.csv").column("weight"); }).text; };
  CHECK(
      refused("weight;km;price\n1;2;3\n") ==
      "t.csv has no column \"weight\"; it has: weight;km;price, in one column: if its fields are separated by ';', read it with "
      "{.separator = ';'}");
  CHECK_THAT(refused("weight\tkm\n1\t2\n"), Catch::Contains("read it with {.separator = '\\t'}"));
  CHECK(refused("mass;km,price\n1,2\n") == "t.csv has no column \"weight\"; it has: mass;km, price");
  CHECK(refused("mass\n1\n") == "t.csv has no column \"weight\"; it has: mass");
  CHECK(parse_csv("weight;km;price\n1;2;3\n", "t.csv", {.separator = ';'}).numbers("km") == std::vector<double>{2});
}

TEST_CASE("columns are of numbers or of texts, and values may be missing") {
  const auto t = parse_csv("id,size,town,flag\n1,2.5,Berlin,\n2,NA,\"Bad \"\"X\"\"\",NaN\n3,-1e3,,null\n", "t.csv");
  CHECK_FALSE(t.is_text(t.column("size")));
  CHECK(t.is_text(t.column("town")));
  CHECK(t.texts("town") == std::vector<std::string>{"Berlin", "Bad \"X\"", ""});
  CHECK(std::isnan(t.number(1, 1)));
  CHECK(t.number(2, 1) == -1000);
  CHECK(t.missing(2, t.column("town")));
  CHECK_FALSE(t.is_text(t.column("flag")));  // nothing at all
  CHECK(t.texts("size") == std::vector<std::string>{"2.5", "", "-1000"});
  CHECK(t.drop_missing({"size"}).numbers("id") == std::vector<double>{1, 3});
  CHECK(t.drop_missing().rows() == 0);
  CHECK(thrown([&] { t.numbers("town"); }).says("column \"town\" is a text column, since data row 1 has \"Berlin\""));
  CHECK(parse_csv("a,b\n1,?\n", "t", {.missing = {"?"}}).missing(0, 1));
  CHECK(parse_csv("zip,n\n01067,1\n", "t", {.text = {"zip"}}).texts("zip") == std::vector<std::string>{"01067"});
  CHECK(thrown([] {
          parse_csv("a,b\n+5,1\n6,2\n", "t", {.text = {"a"}}).numbers("a");
        }).says("column \"a\" is a text column: take it out of CsvOptions::text"));
  const auto chosen = parse_csv("a,b,c\n1,x,3\n", "t", {.columns = {"c", "a"}});
  CHECK(chosen.names() == std::vector<std::string>{"a", "c"});
  CHECK(chosen.number(0, 1) == 3);
  CHECK(thrown([] { parse_csv("a,b\n1,2\n", "t", {.columns = {"d"}}); }).says("t has no column \"d\"; it has: a, b"));
}

TEST_CASE("the words that spreadsheets and pandas write for missing are missing") {
  const auto t = parse_csv("x\n1\n#NA\n#N/A\n<NA>\nNone\n", "t.csv");
  CHECK_FALSE(t.is_text(t.column("x")));
  CHECK(t.drop_missing().rows() == 1);
}

TEST_CASE("lines are cut behind line ends outside quotes") {
  using sk::data::detail::line_cuts;
  using Cuts = std::vector<std::size_t>;
  CHECK(line_cuts("a\nbb\nc\nd", ',', 1) == Cuts{7});
  CHECK(line_cuts("aaaa\nbbbb\ncccc\n", ',', 2) == Cuts{10, 15});
  CHECK(line_cuts("\"a\nb\"\nc", ',', 1) == Cuts{6});
  CHECK(line_cuts("a, \"\n\"\"\n\",b\nc\n", ',', 2) == Cuts{12, 14});
  CHECK(line_cuts("5\" disk\nb\n", ',', 1) == Cuts{10});  // a quote in the middle of a field opens nothing
  CHECK(line_cuts("a\n\"open\n", ',', 1) == Cuts{2});
  CHECK(line_cuts("no line", ',', 3).empty());
  CHECK(line_cuts("aaaa\rbbbb\rcccc\r", ',', 2) == Cuts{10});  // what follows the last one may be a line feed
  CHECK(line_cuts("a\r\nb\r", ',', 2) == Cuts{3});
  CHECK(line_cuts("\"a\rb\"\rc", ',', 1) == Cuts{6});
}

TEST_CASE("a number of any length and form is the nearest double, as strtod has it") {
  std::string text = "value\n";
  std::vector<double> expected;
  const auto add = [&](const std::string& number) {
    text += number + "\n";
    expected.push_back(std::strtod(number.c_str(), nullptr));
  };
  for (const char* number : {"0",
                             "-0",
                             "-0.0",
                             ".5",
                             "-.5",
                             "5.",
                             "-5.",
                             "0.1",
                             "999999999999999",
                             "9999999999999999",
                             "0.3",
                             "123456789012345.6",
                             "0.000000000000001",
                             "0.0000000000000001",
                             "1234567.89e-3",
                             "2.2250738585072011e-308",
                             "9007199254740993",
                             "00000000000000001",
                             "3.14159265358979323846",
                             "+1.5",
                             "1e5",
                             "-1E+5",
                             "1e-400",
                             "-1.5e-400",
                             "12345e-99999999999999999999",
                             "0e99999999999999999999"})
    add(number);
  add("0." + std::string(400, '0') + "1");
  add("1" + std::string(400, '0') + "e-900");
  add("0." + std::string(400, '0') + "1e+10");
  for (std::uint64_t i = 0; i < 20000; ++i) {  // a sign, up to 20 digits, a point anywhere among them, a few exponents
    const auto draw = [&](std::uint64_t k, int below) {
      return static_cast<std::uint64_t>(sk::random_uniform(7, i, k) * static_cast<float>(below));
    };
    const std::uint64_t digits = 1 + draw(0, 20), point = draw(1, static_cast<int>(digits) + 1);
    std::string number = draw(2, 2) ? "-" : "";
    for (std::uint64_t k = 0; k < digits; ++k) {
      if (k == point && draw(3, 4)) number += '.';
      number += static_cast<char>('0' + draw(4 + k, 10));
    }
    if (draw(30, 5) == 0) number += "e" + std::to_string(static_cast<int>(draw(31, 40)) - 20);
    add(number);
  }
  const std::vector<double> numbers = parse_csv(text, "t").numbers("value");
  REQUIRE(numbers.size() == expected.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (std::bit_cast<std::uint64_t>(numbers[i]) != std::bit_cast<std::uint64_t>(expected[i])) CHECK(numbers[i] == expected[i]);
}

TEST_CASE("a number beyond the range of double is text, wherever its digits and its exponent stand") {
  for (const std::string& number : {std::string("1e400"), std::string("-0.1e+400"), std::string("1e99999999999999999999"),
                                    "1" + std::string(400, '0'), "1" + std::string(900, '0') + "e-500"}) {
    double value = 0;
    CHECK_FALSE(sk::data::detail::parse_number(number, value));
  }
}

TEST_CASE("a column of numbers with zeros before them has their texts too") {
  const std::string line_end = GENERATE("\n", "");  // behind the last line
  const auto t = parse_csv("zip,month,x\n02114,1,0.5\n,10,1.50\n10115,3,7" + line_end, "t");
  CHECK_FALSE(t.is_text(0));
  CHECK(t.numbers("zip")[0] == 2114);
  CHECK(t.missing(1, 0));
  CHECK(std::isnan(t.number(1, 0)));
  CHECK(t.texts("zip") == std::vector<std::string>{"02114", "", "10115"});
  CHECK(t.texts("month") == std::vector<std::string>{"1", "10", "3"});
  CHECK(t.of(0).first_reworded() == -1);
  CHECK(t.of(1).first_reworded() == -1);
  CHECK(t.of(2).first_reworded() == 0);
  CHECK(parse_csv("zip\n02114" + line_end, "t").texts("zip") == std::vector<std::string>{"02114"});
  CHECK(parse_csv("zip\n10115" + line_end, "t").of(0).first_reworded() == -1);
  CHECK(parse_csv("a\n1000000" + line_end, "t").text(0, 0) == "1000000");
  CHECK(parse_csv("a\n123456789012345" + line_end, "t").text(0, 0) == "123456789012345");
  const auto ids = parse_csv("id\n1234567890123456789\n1234567890123456788\n0000001234567890" + line_end, "t");  // no doubles
  CHECK(ids.texts("id") == std::vector<std::string>{"1234567890123456789", "1234567890123456788", "0000001234567890"});
  CHECK((ids.number(0, 0) == 1234567890123456789.0 && ids.number(2, 0) == 1234567890.0));
  CHECK_FALSE(parse_csv("time\n1669734000000000" + line_end, "t").of(0).keeps_texts());  // below 2^53, which one is
  std::string late = "a,b\n";  // found out in another block, and with a text beside it
  for (int i = 0; i < 300'000; ++i) late += std::to_string(i) + ",1\n";
  CHECK(parse_csv(late + "007,1" + line_end, "t").text(300'000, 0) == "007");
  CHECK(parse_csv(late + "007,1\n", "t").number(5, 0) == 5);
  CHECK(parse_csv(late + "007,1\nx,1\n", "t").is_text(0));
}

TEST_CASE("a long file is cut into blocks of whole lines, whatever its quotes, and any number of threads reads the same") {
  Folder folder;
  std::string text = "number,note,late\n";
  std::vector<double> numbers;
  std::vector<std::string> notes;
  for (int i = 0; text.size() < 5'000'000; ++i) {
    numbers.push_back(i % 3 == 0 ? i + 0.25 : i);
    notes.push_back(i % 5 == 0 ? "two\nlines, " + std::to_string(i) : i % 7 == 0 ? "a 5\" disk" : "plain");
    text += (i % 3 == 0 ? std::to_string(i) + ".25," : std::to_string(i) + ",") +
            (i % 5 == 0 ? "\"" + notes.back() + "\"" : notes.back()) + (text.size() > 4'000'000 ? ",word\r\n" : ",7\n");
  }
  for (const int threads : {1, 3}) {
    const auto t = sk::data::read_csv(folder.write("long.csv", text), {.threads = threads});
    CHECK(t.numbers("number") == numbers);
    CHECK(t.texts("note") == notes);
    CHECK(t.is_text(t.column("late")));  // found out after four megabytes
    CHECK(t.texts("late").front() == "7");
    CHECK(t.texts("late").back() == "word");
  }
  CHECK(parse_csv(text, "t", {.threads = 2}).texts("note") == notes);
  const std::string cut = text + "1,2\n";
  const std::string fault = "t.csv (byte " + std::to_string(text.size() + 2) + "): line " +
                            std::to_string(1 + std::count(cut.begin(), cut.end() - 1, '\n')) +
                            ": has 2 fields, the first line has 3";
  CHECK(fault_of(cut, {.threads = 2}).text == fault);
}

TEST_CASE("an empty line of one column is a row without a value, nothing, or refused by its line, and never lost in silence") {
  using sk::data::EmptyLines;
  const std::string words =
      "is empty, which in a table of one column may be a row without a value: give the options of read_csv .empty_lines = "
      "EmptyLines::missing if it is, EmptyLines::skipped if it is not";
  const std::string text = "\n\r\nsize\n1\n\n\r\n4\n\n5";
  CHECK(fault_of(text).text == "t.csv (byte 10): line 5: " + words);
  CHECK(fault_of("size\n\n1\n").text == "t.csv (byte 5): line 2: " + words);
  const auto skipped = parse_csv(text, "t", {.empty_lines = EmptyLines::skipped});
  CHECK(skipped.numbers("size") == std::vector<double>{1, 4, 5});
  const auto missing = parse_csv(text, "t", {.empty_lines = EmptyLines::missing});
  CHECK(missing.texts("size") == std::vector<std::string>{"1", "", "", "4", "", "5"});
  CHECK(parse_csv("a\nx\n\ny\n", "t", {.empty_lines = EmptyLines::missing}).texts("a") == std::vector<std::string>{"x", "", "y"});
  CHECK(parse_csv("a\n1\n2\n\n\r\n\n", "t").rows() == 2);                 // behind the last row
  CHECK(parse_csv("a\n1\n \n\"\"\n2\n", "t").rows() == 4);                // fields that are empty are values that are missing
  CHECK(parse_csv("a,b\n\n1,2\n\n3,4\n", "t").numbers("b").size() == 2);  // no row of two columns is empty
  CHECK(parse_csv("a\r1\r\r2\r", "t", {.empty_lines = EmptyLines::missing}).rows() == 3);
  std::string many = "a\n";
  std::vector<std::string> values;
  for (int i = 0; many.size() < 5'000'000; ++i) {  // over the ends of blocks, too
    const bool gap = i >= 300'000 && i < 300'000 + (1 << 21);
    many += gap ? "\n" : std::to_string(i) + "\n";
    values.push_back(gap ? "" : std::to_string(i));
  }
  for (const int threads : {1, 3}) {
    CHECK(parse_csv(many, "t", {.empty_lines = EmptyLines::missing, .threads = threads}).texts("a") == values);
    const auto nothing = parse_csv(many, "t", {.empty_lines = EmptyLines::skipped, .threads = threads});
    CHECK(nothing.rows() == static_cast<std::int64_t>(values.size()) - (1 << 21));
    CHECK(fault_of(many, {.threads = threads})
              .says("t.csv (byte " + std::to_string(many.find("\n\n") + 1) + "): line 300002: is empty"));
  }
}

TEST_CASE("what is no table is refused by line and byte") {
  CHECK(fault_of("").text == "t.csv (byte 0): is empty: a table is wanted");
  for (const char* mark : {"\xFF\xFE", "\xFE\xFF"})
    CHECK(fault_of(mark + std::string("a\0,\0b\0\n\0", 8)).text ==
          "t.csv (byte 0): begins with the mark of UTF-16: save it as UTF-8, which spreadsheets call \"CSV UTF-8\"");
  CHECK(fault_of("a,b\n1,2\n1\n").says("line 3: has 1 fields, the first line has 2"));
  CHECK(fault_of("a,b\n1,2,3\n").text == "t.csv (byte 8): line 2: has more than the 2 fields of the first line");
  CHECK(fault_of("a,b\n\"1,2\n3,4\n").text == "t.csv (byte 4): line 2: a quote is never closed");
  CHECK(fault_of("a,b\n\"1\"2,3\n").says("line 2: text follows a closing quote"));
  for (const std::string& no_number : {std::string("1e999"), std::string("inf"), std::string("0x10"), std::string("+-1"),
                                       std::string("1 2"), std::string(100, 'z')})
    CHECK(thrown([&] {
            parse_csv("a\n1\n" + no_number + "\n", "t").numbers("a");
          }).says("data row 2 has \"" + no_number.substr(0, 40)));
  CHECK(thrown([] { parse_csv(std::string("a\n1\0\n", 5), "t").numbers("a"); }).says(R"(has "1\x00")"));
  CHECK(thrown([] { parse_csv("a\n1\n\x1b[2J\n", "t").numbers("a"); }).says(R"(has "\x1b[2J")"));
  CHECK(thrown([] { parse_csv("a\x1b[2J,b\n1,2\n", "t").numbers("c"); }).says(R"(it has: a\x1b[2J, b)"));
  CHECK_THROWS_AS(parse_csv("1", "t", {.separator = '"'}), sk::ArgumentError);
  CHECK(thrown([] {
          parse_csv("1", "t", {.header = static_cast<sk::data::Header>(7)});
        }).says("read_csv: .header is 7, and no value of its enumeration has that number: give automatic, present or absent"));
  CHECK(
      thrown([] {
        parse_csv("1", "t", {.empty_lines = static_cast<sk::data::EmptyLines>(7)});
      }).says("read_csv: .empty_lines is 7, and no value of its enumeration has that number: give refused, missing or skipped"));
}

TEST_CASE("a small file of separators does not become a large table") {
  const std::string commas(200'000, ',');
  CHECK(fault_of(commas).says("(byte 100000): line 1: has more than 100000 columns"));
  CHECK(parse_csv("1,2,3\n4,5,6\n", "t", {.most_columns = 3}).columns() == 3);
  CHECK(fault_of("1,2,3\n4,5,6\n", {.most_columns = 2}).says("give the options of read_csv more .most_columns"));
  std::string halves;  // 4 bytes in the text, 8 in the table
  for (int i = 0; i < 20000; ++i) halves += "0.5\n";
  CHECK(fault_of(halves, {.limit = 60'000}).says("becomes a table of more than 160000 bytes: give the options of read_csv"));
  CHECK(parse_csv(halves, "t", {.limit = 80'000}).rows() == 20000);  // as many bytes more than the text has
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
  CHECK(thrown([] { parse_csv("a,b\n1,1.5\n", "t").labelled("b"); }).says("column \"b\" has 1.5 in data row 1: a class number"));
  CHECK(thrown([] { parse_csv("a,b\n1,-1\n", "t").labelled("b"); }).says("a class number 0, 1, 2, ... is wanted"));
  CHECK_THROWS_AS(parse_csv("a\n1\n", "t").dataset("a"), sk::ArgumentError);
  CHECK(thrown([] { parse_csv("a,b\n1,\n", "t").dataset("a"); }).says("column \"b\" has no value in data row 1"));
  CHECK(thrown([] { parse_csv("a,b\n1,1e39\n", "t").dataset("a"); }).says("column \"b\" has 1e+39 in data row 1: a float"));
  CHECK(thrown([&] { sk::data::read_csv(path, {.limit = 10}); }).says("larger than the limit of 10 bytes"));
#if SKEIN_WITH_ZLIB
  const std::string text = "a,b\n1,2\n";
  CHECK(sk::data::read_csv(folder.write("t.csv.gz", gzipped(Bytes(text.begin(), text.end())))).number(0, 1) == 2);
#endif
}

TEST_CASE("tables cut at every length and with random bytes changed never do more than throw") {
  const std::string text = "a,\"b\"\"c\",d\r\n1,2,3\n\"4\",5e3,-6\n";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    try {
      const auto t = parse_csv(text.substr(0, n), "t");
      CHECK(t.of(t.columns() - 1).size() == t.rows());
    } catch (const sk::FileError& e) { CHECK(e.offset() <= static_cast<long long>(n)); }
  }
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    std::string changed = text;
    changed[sk::random_below(2, trial, 0, text.size())] = static_cast<char>(sk::random_below(2, trial, 1, 256));
    try {
      const auto t = parse_csv(changed, "t");
      CHECK(t.of(t.columns() - 1).size() == t.rows());
    } catch (const sk::FileError&) { ++refused; }
  }
  CHECK(refused > 500);
}

TEST_CASE("a number that stands for no value is missing where numbers stand") {
  const CsvOptions options{.missing = {"", "-999", "9.90"}};
  const auto t = parse_csv("a,b,c\n1,-999,x\n2,3,-999\n9.90,-999.5,y\n", "t", options);
  CHECK((t.missing(2, 0) && t.missing(0, 1) && t.missing(1, 2)));
  CHECK((t.number(1, 1) == 3 && t.number(2, 1) == -999.5));  // the words are texts
  CHECK(parse_csv("a\n-999\n2\n", "t", options).missing(0, 0));
}

TEST_CASE("columns behind each other keep their texts where one of them has some") {
  const sk::data::Column padded = parse_csv("zip\n02114\n10001\n", "t").of(0), plain = parse_csv("zip\n7\n\"\"\n", "t").of(0),
                         wide = parse_csv("zip\n1.5\n", "t").of(0);
  const auto of = [](sk::data::Column first, const sk::data::Column& second) {
    first.append(second);
    std::string all;
    for (std::int64_t i = 0; i < first.size(); ++i) {
      CHECK(first.missing(i) == first.text(i).empty());
      if (!first.missing(i)) CHECK(first.number(i) == std::strtod(first.text(i).c_str(), nullptr));
      all += first.text(i) + ";";
    }
    return all;
  };
  CHECK(of(padded, parse_csv("zip\n01067\n02114\n", "t").of(0)) == "02114;10001;01067;02114;");
  CHECK(of(padded, plain) == "02114;10001;7;;");
  CHECK(of(plain, padded) == "7;;02114;10001;");
  CHECK(of(padded, wide) == "02114;10001;1.5;");
  CHECK(of(wide, padded) == "1.5;02114;10001;");
  sk::data::Column more = padded;
  more.add(5);
  more.add(1.5);
  more.add_missing();
  more.add(10001);
  CHECK((more.number(2) == 5 && more.number(3) == 1.5 && more.missing(4) && more.text(5) == "10001" && more.text(0) == "02114"));
}
