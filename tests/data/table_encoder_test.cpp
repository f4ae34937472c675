// SPDX-License-Identifier: Apache-2.0
#include <skein/data/table_encoder.hpp>

#include <set>

#include <skein/data/csv.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>
#include <skein/data/table_categories.hpp>
#include <skein/data/table_split.hpp>
#include <skein/train/archive.hpp>

#include "fixtures/tables.hpp"
#include "support.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
using namespace data_test;
using sk::data::Fill;
using sk::data::FillCategory;
using sk::data::parse_csv;
using sk::data::Table;
using sk::data::TableEncoder;

namespace {
template <class Set> std::vector<float> values(const Set& set) {
  const long n = set.sample_extents().count();
  std::vector<float> all(static_cast<std::size_t>(n * set.size()));
  for (std::int64_t i = 0; i < set.size(); ++i) set.gather(sk::data::Indices(&i, 1), all.data() + i * n, n);
  return all;
}
TableEncoder of_passengers() {
  TableEncoder encoder;
  encoder.standardize({"age", "fare"}, {.missing = Fill::median})
      .one_hot({"sex", "port", "class"}, {.missing = FillCategory::most_frequent})
      .label("survived");
  return encoder;
}
}  // namespace

TEST_CASE("numbers, missing values and categories become what scikit-learn makes of them") {
  const Table table = parse_csv(fixtures::passengers, "passengers.csv");
  TableEncoder encoder = of_passengers();
  const auto set = encoder.fit(table).encode(table);
  const std::vector<float> found = values(set);
  REQUIRE(found.size() == fixtures::passengers_encoded.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(fixtures::passengers_encoded[i]).margin(1e-6).epsilon(0));
  CHECK(encoder.names() == std::vector<std::string>{"age", "fare", "sex = female", "sex = male", "port = C", "port = Q",
                                                    "port = S", "class = 1", "class = 2", "class = 3"});
  CHECK(encoder.classes() == std::vector<std::string>{"no", "yes"});
  CHECK(set.target() == sk::data::Target::labels(2));
  CHECK(set.label(0) == 0);
  CHECK(set.label(1) == 1);
}

TEST_CASE("what the training rows taught is done to other rows, and is the same after a file") {
  const Table table = parse_csv(fixtures::passengers, "passengers.csv");
  TableEncoder encoder = of_passengers();
  encoder.fit(table);
  TableEncoder read;
  sk::train::from_bytes(sk::train::to_bytes(encoder), read);
  const Table others = parse_csv("age,fare,sex,port,class\n,8,male,S,3\n", "new.csv");  // without the label
  const auto set = read.encode(others);
  CHECK(values(set) == values(encoder.encode(others)));
  CHECK(values(set)[0] == Approx(fixtures::passengers_encoded[30]));  // the median, as in row 4
  CHECK(set.target() == sk::data::Target{});
}

TEST_CASE("an encoder that learns again forgets what it had learnt, but for categories that were given") {
  TableEncoder encoder;
  encoder.one_hot({"k"}).one_hot({"g"}, {.categories = {"x", "y"}}).label("l");
  const Table first = parse_csv("k,g,l\na,x,no\nb,y,yes\n", "first.csv");
  const Table second = parse_csv("k,g,l\nc,x,up\nb,x,down\n", "second.csv");
  encoder.fit(first);
  TableEncoder read;
  sk::train::from_bytes(sk::train::to_bytes(encoder), read);
  for (TableEncoder* again : {&encoder, &read}) {
    again->fit(second);
    CHECK(again->categories("k") == std::vector<std::string>{"b", "c"});
    CHECK(again->categories("g") == std::vector<std::string>{"x", "y"});
    CHECK(again->classes() == std::vector<std::string>{"down", "up"});
    CHECK_NOTHROW(again->encode(second));
  }
}

TEST_CASE("an encoder in a file whose columns need more values than it has moments is refused") {
  TableEncoder small, large;
  small.numbers({"x"}).fit(parse_csv("x\n1\n2\n", "t.csv"));
  large.numbers({"x", "y"}).fit(parse_csv("x,y\n1,2\n2,3\n", "t.csv"));
  // Behind the columns stand the moments: of the samples 20 bytes and 16 a value, of the targets 20 bytes.
  auto forged = sk::train::to_bytes(large);
  const auto moments = sk::train::to_bytes(small);
  forged.resize(forged.size() - 72);
  forged.insert(forged.end(), moments.end() - 56, moments.end());
  TableEncoder read;
  CHECK(thrown([&] { sk::train::from_bytes(forged, read); }).says("do not fit each other"));
  CHECK_NOTHROW(sk::train::from_bytes(moments, read));
  CHECK(read.width() == 1);
}

TEST_CASE("indicators, categories of their own and mean values") {
  const Table table = parse_csv("x,k\n1,a\n,b\n5,\n", "t.csv");
  TableEncoder encoder;
  encoder.numbers({"x"}, {.missing = Fill::mean, .indicator = true})
      .one_hot({"k"}, {.missing = FillCategory::own, .unknown = FillCategory::own});
  CHECK(values(encoder.fit(table).encode(table)) == std::vector<float>{1, 0, 1, 0, 0, 3, 1, 0, 1, 0, 5, 0, 0, 0, 1});
  CHECK(values(encoder.encode(parse_csv("x,k\n2,c\n", "t"))) == std::vector<float>{2, 0, 0, 0, 1});
  CHECK(encoder.names() == std::vector<std::string>{"x", "x is missing", "k = a", "k = b", "k is another or missing"});
  TableEncoder zeros;
  zeros.numbers({"x"}, {.missing = Fill::zero}).one_hot({"k"}, {.missing = FillCategory::zeros});
  CHECK(values(zeros.fit(table).encode(table)) == std::vector<float>{1, 1, 0, 0, 0, 1, 5, 0, 0});
}

TEST_CASE("indices of categories are tokens, or values of a sample") {
  const Table table = parse_csv("town,day,n\nUlm,1,3\nBonn,7,4\nUlm,7,5\n", "t.csv");
  TableEncoder encoder;
  encoder.index({"town", "day"}, {.unknown = FillCategory::own}).target({"n"});
  const auto tokens = encoder.fit(table).tokens(table);
  const std::int64_t all[] = {0, 1, 2};
  std::int32_t found[6];
  tokens.gather(all, found, 2);
  CHECK(std::vector<std::int32_t>(found, found + 6) == std::vector<std::int32_t>{1, 0, 0, 1, 1, 1});
  CHECK(tokens.target() == sk::data::Target::vector(1));
  CHECK(values(encoder.encode(parse_csv("town,day\nKiel,7\n", "t"))) == std::vector<float>{2, 1});
  CHECK_THROWS_AS(encoder.numbers({"n"}), sk::ArgumentError);  // it is the target
  const auto none = [](const std::string& setting, const char* words) {
    return Catch::Equals("table encoder: " + setting + " is 7, and no value of its enumeration has that number: give " + words);
  };
  const char* const numbers = "refuse, mean, median or zero";
  const char* const categories = "refuse, zeros, most_frequent or own";
  CHECK_THROWS_WITH(encoder.numbers({"m"}, {.missing = static_cast<sk::data::Fill>(7)}), none(".missing", numbers));
  CHECK_THROWS_WITH(encoder.standardize({"m"}, {.missing = static_cast<sk::data::Fill>(7)}), none(".missing", numbers));
  CHECK_THROWS_WITH(encoder.one_hot({"m"}, {.missing = static_cast<FillCategory>(7)}), none(".missing", categories));
  CHECK_THROWS_WITH(encoder.index({"m"}, {.unknown = static_cast<FillCategory>(7)}), none(".unknown", categories));
}

TEST_CASE("a label and targets are one target vector, and outputs go back to the table's units") {
  const Table table = parse_csv("x,kind,price\n1,b,100\n2,a,300\n", "t.csv");
  TableEncoder encoder;
  encoder.numbers({"x"}).label("kind").standardize_target({"price"});
  const auto set = encoder.fit(table).encode(table);
  CHECK(set.target() == sk::data::Target::vector(2));
  const std::int64_t all[] = {0, 1};
  float y[4];
  set.targets(all, y, 2);
  CHECK(std::vector<float>(y, y + 4) == std::vector<float>{1, -1, 0, 1});
  float outputs[] = {0.2f, 0.7f, 0.5f};  // two classes, a price
  encoder.restore(outputs);
  CHECK(outputs[0] == 0.2f);
  CHECK(outputs[2] == 250);
  float two[] = {1, 2};
  CHECK(thrown([&] { encoder.restore(std::span<float>(two)); }).says("has 2 values, its labels and targets 3"));
  TableEncoder price;
  price.numbers({"x"}).standardize_target({"price"}).fit(table);
  CHECK(thrown([&] { price.restore(std::span<float>(two)); }).says("has 2 values, its labels and targets 1"));
  CHECK((two[0] == 1 && two[1] == 2));  // what is refused is not changed
  CHECK(price.encode(table.subset({})).target() == sk::data::Target::vector(1));
  CHECK(encoder.encode(table.subset({})).size() == 0);
}

TEST_CASE("what has no encoding is refused by column and row, with what to do") {
  const Table table = parse_csv("x,k,y\n1,a,0\n2,b,1\n", "t.csv");
  TableEncoder encoder;
  CHECK(thrown([&] { encoder.encode(table); }).says("it has learnt nothing yet: call fit(training) first"));
  encoder.standardize({"x"}).one_hot({"k"}).label("y");
  encoder.fit(table);
  const auto refused = [&](const char* text) { return thrown([&] { encoder.encode(parse_csv(text, "n.csv")); }); };
  CHECK(refused("x,k,y\n1,a,0\n,a,0\n").says("n.csv: column \"x\" has no value in data row 2: drop such rows by drop_missing()"));
  CHECK(refused("x,k,y\n1,,0\n").says("column \"k\" has no value in data row 1"));
  CHECK(refused("x,k,y\n1,c,0\n").says("column \"k\" has \"c\" in data row 1: the training rows do not have it"));
  CHECK(refused("x,k,y\n1,a,2\n").says("column \"y\" has \"2\" in data row 1: the training rows do not have this class"));
  CHECK(refused("x,k,y\none,a,0\n").says("column \"x\" is a text column, since data row 1 has \"one\""));
  CHECK(refused("x,k,y\n\"1,200\",a,0\n")
            .says("column \"x\" is a text column, since data row 1 has \"1,200\": numbers have no thousands separators, and a "
                  "point before the decimals: write 1200, or 1.200"));
  CHECK(refused("x,k,y\n\"1,200,300.5\",a,0\n").says(": write 1200300.5"));
  CHECK(refused("x,k,y\n\"1,5\",a,0\n").says("before the decimals: write 1.5"));
  CHECK(refused("k,y\na,0\n").says("n.csv has no column \"x\"; it has: k, y"));
  CHECK(thrown([&] { encoder.fit(table.subset({})); }).says("t.csv has no rows to learn from"));
  CHECK(thrown([&] { TableEncoder{}.label("y").fit(table); }).says("no column is a value of the sample"));
  CHECK(thrown([&] {
          TableEncoder{}.numbers({"y"}).label("y");
        }).says("column \"y\" is a value of the sample and what is predicted"));
  CHECK(thrown([&] { TableEncoder{}.index({"k"}, {.missing = FillCategory::zeros}); }).says("since 0 is a category"));
  CHECK(thrown([&] { TableEncoder{}.numbers({"x"}).fit(table).tokens(table); }).says("\"x\" is not taken by index()"));
  CHECK(thrown([&] { TableEncoder{}.numbers({"x"}).fit(table).classes(); }).says("no column is a label"));
}

TEST_CASE("an encoder stays as it is where it refuses a column or the rows that it should learn from") {
  const Table table = parse_csv("c,v,z\na,1,1\nb,2,2\na,3,4\n"), other = parse_csv("c,w\nq,1\nr,2\ns,3\n");
  TableEncoder encoder;
  encoder.one_hot({"c"}).standardize({"v"}).fit(table);
  const std::vector<float> before = values(encoder.encode(table));
  const std::uint64_t fingerprint = encoder.fingerprint();
  CHECK(thrown([&] { encoder.fit(other); }).says("has no column \"v\""));
  CHECK(thrown([&] { encoder.standardize({"z", "v"}); }).says("column \"v\" is taken twice"));
  CHECK(values(encoder.encode(table)) == before);
  CHECK(encoder.fingerprint() == fingerprint);
}

TEST_CASE("a column that is taken twice in the same way is refused") {
  TableEncoder encoder;
  encoder.standardize({"x"}).numbers({"x"}).one_hot({"k"});
  const std::string again = "is taken twice in the same way: name it once";
  CHECK(thrown([&] { encoder.standardize({"x"}); }).says("table encoder: column \"x\" " + again));
  CHECK(thrown([&] { encoder.one_hot({"k"}); }).says("column \"k\" " + again));
  CHECK(thrown([&] { TableEncoder{}.target({"y", "y"}); }).says("column \"y\" " + again));
  CHECK(encoder.fit(parse_csv("x,k\n1,a\n2,b\n", "t.csv")).width() == 4);
}

TEST_CASE("one_hot of a column of measured numbers is refused") {
  std::string text = "weight,km\n";
  for (int i = 0; i < 1002; ++i) text += std::to_string(i % 1001) + ".5," + std::to_string(i % 1000) + "\n";
  const Table table = parse_csv(text, "t.csv");
  CHECK(thrown([&] { TableEncoder{}.one_hot({"weight"}).fit(table); })
            .says("t.csv: column \"weight\" has 1001 different values, of which one_hot learns up to 1000: take numbers by "
                  "standardize(), many categories by index(), or name them in .categories"));
  CHECK(TableEncoder{}.one_hot({"km"}).fit(table).width() == 1000);
  std::vector<std::string> weights = table.texts("weight");
  weights.pop_back();
  CHECK(TableEncoder{}.index({"weight"}).fit(table).width() == 1);
  CHECK(TableEncoder{}.one_hot({"weight"}, {.categories = weights}).fit(table).width() == 1001);
  CHECK(thrown([&] {
          TableEncoder{}.one_hot({"weight"}, {.categories = table.texts("weight")});
        }).says("the category \"0.5\" of column \"weight\" is given twice: name it once"));
}

TEST_CASE("a column with another category in each row is refused") {
  std::string text = "id,price,town\n";
  for (int i = 0; i < 60; ++i) text += "A" + std::to_string(i) + "," + std::to_string(i) + ".5,Ulm\n";
  const Table table = parse_csv(text, "t.csv");
  CHECK(
      thrown([&] { TableEncoder{}.one_hot({"id"}).fit(table); })
          .says("t.csv: column \"id\" has another category in each of its 60 training rows: take numbers by standardize(), leave "
                "out a column that numbers or names the rows, or give the .categories"));
  CHECK(thrown([&] { TableEncoder{}.index({"id"}).fit(table); }).says("another category in each"));
  CHECK(thrown([&] { TableEncoder{}.one_hot({"town"}).label("price").fit(table); })
            .says("column \"price\" has another class in each of its 60 training rows: take what is predicted as a number by "
                  "target() or standardize_target()"));
  CHECK(TableEncoder{}.one_hot({"id"}, {.categories = table.texts("id")}).fit(table).width() == 60);
  const std::int64_t few[] = {0, 1, 2};
  CHECK(TableEncoder{}.one_hot({"id"}).fit(table.subset(few)).width() == 3);
}

TEST_CASE("categories that are texts stay texts where a file has only such as look like numbers") {
  const Table training = parse_csv("zip,size\n02114,1\nSW1A,2\n100000,3\n0,4\n", "t.csv");
  TableEncoder encoder;
  encoder.one_hot({"zip"}, {.unknown = FillCategory::zeros}).numbers({"size"}).fit(training);
  CHECK(encoder.categories("zip") == std::vector<std::string>{"0", "02114", "100000", "SW1A"});
  TableEncoder read;
  sk::train::from_bytes(sk::train::to_bytes(encoder), read);
  for (const char* text : {"zip,size\n02114,5\n", "zip,size\n\"02114\",5\n", "zip,size\n02114,5\n1e5,6\n", "size,zip\n5,02114"}) {
    std::vector<float> found = values(read.encode(parse_csv(text, "n.csv")));
    found.resize(5);
    CHECK(found == std::vector<float>{0, 1, 0, 0, 5});
  }
  CHECK(values(read.encode(parse_csv("zip,size\n100000,5\n0,6\n", "n.csv"))) == std::vector<float>{0, 0, 1, 0, 5, 1, 0, 0, 0, 6});
  CHECK(values(read.encode(parse_csv("zip,size\n2114,5\n", "n.csv"))) == std::vector<float>{0, 0, 0, 0, 5});
  const std::string refused =
      "n.csv: column \"zip\" is taken as texts, as in the training rows or the given categories, and was read as numbers here, "
      "of "
      "which 1.5 in data row 2 may stand otherwise in the file: read it with {.text = {\"zip\"}}";
  CHECK(thrown([&] { read.encode(parse_csv("zip,size\n3,1\n1.50,5\n", "n.csv")); }).text == refused);
  CHECK(thrown([&] { read.encode(parse_csv("zip,size\n3,1\n+1,5\n", "n.csv")); }).says("of which 1 in data row 2 may stand"));
  CHECK(thrown([&] { read.encode(parse_csv("zip,size\n1e5,5\n", "n.csv")); }).says("of which 100000 in data row 1 may stand"));
  CHECK_NOTHROW(read.encode(parse_csv("zip,size\n1.50,5\n", "n.csv", {.text = {"zip"}})));
  const Table mixed = parse_csv("zip,size\n3,1\n1.50,5\n", "n.csv");
  CHECK_NOTHROW(read.encode(mixed.subset(std::vector<std::int64_t>{0})));  // the row in doubt is not chosen
  CHECK(thrown([&] { read.encode(mixed.subset(std::vector<std::int64_t>{1})); }).text == refused);
  CHECK(thrown([&] {
          read.encode(parse_csv("zip,size\n0,5\n3,many\n", "n.csv"));
        }).says("n.csv: column \"size\" is a text column, since data row 2 has \"many\""));
}

TEST_CASE("a category as a number, and as it was given") {
  using namespace sk::data::detail;
  CHECK(as_number("02114") == "2114");
  CHECK(as_number("SW1A") == "SW1A");
  CHECK(is_short_number("100000"));
  CHECK_FALSE(is_short_number("1.0"));
  CHECK_FALSE(is_short_number("SW1A"));
}

TEST_CASE("categories that are numbers stay numbers where a file has texts beside them") {
  const Table training = parse_csv("month,x\n1,0\n2,0\n10,0\n", "t.csv");
  TableEncoder encoder;
  encoder.one_hot({"month"}, {.unknown = FillCategory::zeros}).fit(training);
  CHECK(values(encoder.encode(parse_csv("month\n02\n10\nJan\n1.0\n", "n.csv"))) ==
        std::vector<float>{0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0});
  CHECK(values(encoder.encode(parse_csv("month\n02\n01\n", "n.csv"))) == std::vector<float>{0, 1, 0, 1, 0, 0});
  TableEncoder given;
  given.one_hot({"zip"}, {.categories = {"02114", "10115"}});
  given.fit(parse_csv("zip\n02114\n10115\n", "t.csv"));
  for (const char* text : {"zip\n10115\n", "zip\n10115"})  // with a line end, and without
    CHECK(values(given.encode(parse_csv(text, "n.csv"))) == std::vector<float>{0, 1});
}

TEST_CASE("categories that are whole numbers up to 2^53 are found as they stand in the file") {
  const std::vector<std::string> times{"1669734000000000", "1669735000000000"};
  const Table numbers = parse_csv("time,y\n1669734000000000,0\n1669735000000000,1\n", "t.csv");
  CHECK(numbers.text(0, 0) == times[0]);
  const std::vector<float> one_each{1, 0, 0, 1};
  TableEncoder given, learnt, texts;
  given.one_hot({"time"}, {.unknown = FillCategory::zeros, .categories = times});
  CHECK(values(given.fit(numbers).encode(numbers)) == one_each);
  CHECK(values(learnt.one_hot({"time"}).fit(numbers).encode(numbers)) == one_each);
  CHECK(learnt.categories("time") == times);
  texts.one_hot({"time"});  // a text beside it makes it a column of texts
  texts.fit(parse_csv("time,y\n1669734000000000,0\nA1,1\n", "t.csv"));
  CHECK(values(texts.encode(parse_csv("time\n1669734000000000\n", "n.csv"))) == std::vector<float>{1, 0});
  CHECK(sk::data::detail::CategoryOf(numbers.of(0), {"1.669734e+15"}, false)(0) == 0);  // as an older file has it
}

TEST_CASE("a column without a text that becomes numbers has missing ones") {
  sk::data::Column column("x", std::vector<std::string>{"", ""});
  column.take_as_numbers();
  CHECK((column.missing(0) && column.missing(1) && std::isnan(column.number(0))));
}

TEST_CASE("categories that are whole numbers beyond what a double tells apart are refused, and taken as texts") {
  const std::string text = "user,y\n9007199254740992,0\n9007199254740993,1\n12,0\n";
  TableEncoder encoder;
  encoder.index({"user"}).label("y");
  CHECK_THROWS_WITH(encoder.fit(parse_csv(text, "ids.csv")),
                    Catch::StartsWith("ids.csv: column \"user\" has 9007199254740992 in data row 1: a double tells "
                                      "whole numbers apart below 9007199254740992, so that") &&
                        Catch::EndsWith("read it with {.text = {\"user\"}}"));
  CHECK(encoder.fit(parse_csv(text, "ids.csv", {.text = {"user"}})).categories("user").size() == 3);
  CHECK(encoder.fit(parse_csv("user,y\n900719925474099,0\n1e3,1\n", "ids.csv")).categories("user").size() == 2);
}

TEST_CASE("an encoder says what became of each column") {
  TableEncoder encoder = of_passengers();
  encoder.fit(parse_csv(fixtures::passengers, "passengers.csv"));
  const std::string text = encoder.text();
  CHECK(text.starts_with("age: a number, mean "));
  CHECK(text.find("\nsex: 2 categories, female, male\n") != text.npos);
  CHECK(text.find("\nclass: 3 categories, 1, 2, 3\nsurvived: 2 classes, no, yes\n") != text.npos);
  std::string towns = "town,y\n";
  for (int i = 0; i < 7; ++i) towns += "t" + std::to_string(i) + ",1\n";
  CHECK(TableEncoder{}.index({"town"}).target({"y"}).fit(parse_csv(towns)).text() ==
        "town: 7 categories, t0, t1, t2, t3, t4, ...\ny: a target\n");
  CHECK_THROWS_AS(TableEncoder{}.numbers({"x"}).text(), sk::ArgumentError);
}

TEST_CASE("a Standardizer is learnt on the training samples and maps any others") {
  const auto train = sk::data::from_tensors(std::vector<double>{1, 5, 7, 3, 5, 7}, sk::Extents{1, {3}});
  const sk::data::Standardizer standard(train);
  CHECK(standard.mean(0) == 2);
  CHECK(standard.deviation(0) == 1);
  CHECK(standard.deviation(1) == 1);  // a constant
  const auto mapped = sk::data::map(sk::data::from_tensors(std::vector<double>{4, 6, 7}, sk::Extents{1, {3}}), standard);
  CHECK(values(mapped) == std::vector<float>{2, 1, 0});
  float sample[] = {2, 1, 0};
  standard.restore(std::span<float>(sample));
  CHECK(sample[0] == 4);
  CHECK(thrown([&] { standard(std::span<float>(sample, 2)); }).says("of 3 values was given a sample of 2"));
  std::vector<double> tenth(1000, 0.1);
  CHECK(sk::data::Standardizer(sk::data::from_tensors(tenth, sk::Extents{1, {1}})).deviation(0) == 1);
  CHECK_THROWS_AS(sk::data::Standardizer(train.slice(0, 0)), sk::ArgumentError);
  const auto large = "a Standardizer found value 0 of samples so large that their squares are beyond what a double holds";
  CHECK_THROWS_WITH(sk::data::Standardizer(sk::data::from_tensors(std::vector<double>{1e160, 0, 0, 5}, sk::Extents{1, {1}})),
                    Catch::StartsWith(large));
  sk::data::TableEncoder encoder;
  CHECK(thrown([&] {
          encoder.standardize({"x"}).fit(parse_csv("x\n1e160\n0\n", "t"));
        }).says("a Standardizer found numbers in column \"x\" so large that"));
}

TEST_CASE("splits: at random, whole groups on one side, the past before the future") {
  std::string text = "patient,day,x\n";
  for (int i = 0; i < 100; ++i)
    text += std::to_string(i % 17) + ",2026-01-" + (i % 31 < 9 ? "0" : "") + std::to_string(i % 31 + 1) + "," +
            std::to_string(i) + "\n";
  const Table table = parse_csv(text, "t.csv");
  const auto whole = [&](const std::pair<Table, Table>& parts) {
    std::multiset<double> all;
    for (const Table* part : {&parts.first, &parts.second})
      for (const double x : part->numbers("x")) all.insert(x);
    return all.size() == 100 && std::set<double>(all.begin(), all.end()).size() == 100;
  };
  const auto random = sk::data::split(table, 0.7, sk::Seed{3});
  CHECK(random.first.rows() == 70);
  CHECK(whole(random));
  CHECK(random.first.numbers("x") == sk::data::split(table, 0.7, sk::Seed{3}).first.numbers("x"));
  CHECK(random.first.numbers("x") != sk::data::split(table, 0.7, sk::Seed{4}).first.numbers("x"));

  const auto grouped = sk::data::split(table, 0.7, sk::data::by_group("patient"), sk::Seed{3});
  CHECK(whole(grouped));
  CHECK(grouped.first.rows() >= 70);
  CHECK(grouped.first.rows() < 77);
  const auto first = grouped.first.numbers("patient"), second = grouped.second.numbers("patient");
  for (const double p : second) CHECK(std::find(first.begin(), first.end(), p) == first.end());

  const auto timed = sk::data::split(table, 0.7, sk::data::by_time("day"));
  CHECK(whole(timed));
  const auto past = timed.first.texts("day"), future = timed.second.texts("day");
  CHECK(*std::max_element(past.begin(), past.end()) < *std::min_element(future.begin(), future.end()));
  CHECK(past.size() >= 70);
  CHECK(sk::data::split(table, 0, sk::data::by_time("day")).first.rows() == 0);
  CHECK(sk::data::split(table, 1, sk::data::by_group("patient")).second.rows() == 0);
  CHECK_THROWS_WITH(sk::data::split(table, 1.5),
                    Catch::StartsWith("split: the fraction is 1.5: give the share of the first part"));
  std::string ids = "user,x\n";  // of which a double holds one
  for (int i = 0; i < 40; ++i) ids += "123456789012345678" + std::to_string(i % 4) + "," + std::to_string(i) + "\n";
  CHECK(sk::data::split(parse_csv(ids, "t"), 0.5, sk::data::by_group("user"), sk::Seed{3}).first.rows() == 20);
  CHECK(thrown([] {
          sk::data::split(parse_csv("g,x\n,1\n", "t"), 0.5, sk::data::by_group("g"));
        }).says("column \"g\" has no value in data row 1: each row needs a group"));
}

TEST_CASE("by_time takes numbers and ISO texts of one form, and no texts that do not sort as time") {
  const auto of = [](const std::vector<std::string>& times) {
    return sk::data::Table({sk::data::Column("t", times)}, "sales.csv");
  };
  const auto earlier = [&](const std::vector<std::string>& times) {
    return sk::data::split(of(times), 0.5, sk::data::by_time("t")).first.texts("t");
  };
  const std::vector<std::vector<std::string>> taken = {{"2020-10-01", "2020-09-01"},
                                                       {"2020-10-01T08:30", "2020-09-30T23:00"},
                                                       {"2020-10-01 08:30:00", "2020-10-01 08:29:59"},
                                                       {"2020-10-01T08:30:00.125Z", "2020-10-01T08:30:00.075Z"},
                                                       {"2020-10-01 08:30+02:00", "2020-10-01 08:00+02:00"}};
  for (const auto& times : taken) {
    INFO(times[0]);
    CHECK(earlier(times) == std::vector<std::string>{times[1]});
  }
  const std::vector<std::vector<std::string>> refused = {
      {"9/1/2020", "10/1/2020", "11/2/2019"}, {"Jan", "Feb"}, {"01.12.2019", "02.01.2020"}, {"2020-9-1", "2020-10-1"},
      {"2020-13-01", "2020-01-01"},           {"2020", "x"},  {"2020-01-09 8:30"},          {"2020-01-09-01"}};
  for (const auto& times : refused) {
    INFO(times[0]);
    CHECK_THROWS_AS(earlier(times), sk::ArgumentError);
  }
  CHECK(thrown([&] {
          earlier({"2020-09-01", "9/1/2020"});
        })
            .says("sales.csv: column \"t\" has \"9/1/2020\" in data row 2: by_time() sorts texts, and such texts do not sort as "
                  "time: "
                  "write it as 2020-01-09 or 2020-01-09 08:30, in all rows, or as a number"));
  CHECK(
      thrown([&] {
        earlier({"2020-09-01T08:00+02:00", "2020-09-01T07:30+01:00"});
      })
          .says(
              "in data row 2: by_time() sorts texts, and data row 1 has \"2020-09-01T08:00+02:00\", which is written in another "
              "way: write all times alike"));
  CHECK(thrown([&] {
          sk::data::split(of({"", "2020-01-01", "2020-01-01 08:30"}).drop_missing(), 0.5, sk::data::by_time("t"));
        }).says("in data row 3: by_time() sorts texts, and data row 2 has"));
  CHECK(earlier({}).empty());
}

TEST_CASE("columns of a program's own make a table") {
  const double ages[] = {3, std::nan(""), 5.5};
  const std::string towns[] = {"Ulm", "", "Bonn"};
  const Table table({sk::data::Column("age", ages), sk::data::Column("town", towns)});
  CHECK(table.rows() == 3);
  CHECK(table.missing(1, 0));
  CHECK(table.missing(1, 1));
  CHECK(table.texts("town")[2] == "Bonn");
  const std::int64_t chosen[] = {2, 0};
  CHECK(table.subset(chosen).numbers("age") == std::vector<double>{5.5, 3});
  CHECK(thrown([&] { table.subset(chosen).subset(std::vector<std::int64_t>{2}); }).says("row 2 is not one of 2"));
  CHECK_THROWS_AS(Table({sk::data::Column("a", ages), sk::data::Column("b", std::span(towns, 2))}), sk::ShapeError);
  Table named = table.subset(chosen);
  const Table moved = std::move(named);
  CHECK((named.texts("town") == moved.texts("town") && named.columns() == 2));
}

TEST_CASE("a number that a float cannot hold is refused with its column and row") {
  const Table table = parse_csv("price,sold\n1,0\n1e300,1\n3,0\n", "prices.csv");
  TableEncoder encoder;
  encoder.numbers({"price"}).target({"sold"});
  encoder.fit(table);
  CHECK_THROWS_WITH(encoder.encode(table), Catch::Contains("prices.csv: column \"price\" has 1e+300 in data row 2") &&
                                               Catch::Contains("a float holds numbers up to 3.4e38"));
}

TEST_CASE("0 and -0 are one category", "[data]") {
  const auto table = sk::data::parse_csv("k,y\n-0.0,1\n0.0,2\n1.5,3\n-0,4\n", "zeros");
  sk::data::TableEncoder encoder;
  encoder.one_hot({"k"}).target({"y"}).fit(table);
  const auto rows = encoder.encode(table);
  CHECK(rows.sample_extents() == sk::Extents{1, {2}});
  std::vector<float> x(8);
  rows.gather(std::vector<std::int64_t>{0, 1, 2, 3}, x.data(), 2);
  CHECK(x == std::vector<float>{1, 0, 1, 0, 0, 1, 1, 0});
}
