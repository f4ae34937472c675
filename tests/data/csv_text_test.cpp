// SPDX-License-Identifier: Apache-2.0
#include <skein/data/csv_text.hpp>

#include <sys/resource.h>

#include <functional>
#include <string>
#include <utility>

#include <skein/data/csv.hpp>

#include "../support/processes.hpp"
#include "../support/sanitizers.hpp"
#include "support.hpp"
#include <catch2/catch.hpp>

using namespace data_test;
using skein::data::CsvOptions;
using skein::data::parse_csv;
using skein::data::read_csv;

namespace {
constexpr std::uint64_t megabyte = 1 << 20;
std::string times(const std::string& text, std::size_t bytes) {
  std::string all;
  all.reserve(bytes + text.size());
  while (all.size() < bytes) all += text;
  return all;
}

/// The most memory, in bytes, that a process of its own has beside what it begins with while it does `work`; then what work says.
template <class Work> std::pair<std::uint64_t, std::string> most_memory(const Work& work) {
  const std::string said = support::wait_for(support::start_process([&] {
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    const std::string text = work();
    ::getrusage(RUSAGE_SELF, &after);
    return std::to_string((after.ru_maxrss - before.ru_maxrss) * 1024) + " " + text;
  }));
  INFO(said);
  REQUIRE(said.find_first_not_of("0123456789") < 20);
  return {std::stoull(said), said.substr(said.find(' ') + 1)};
}
}  // namespace

#if SKEIN_WITH_ZLIB && !SKEIN_TEST_ASAN && !SKEIN_TEST_TSAN
TEST_CASE("whatever a small file becomes, memory stays within the limit and what CsvOptions says beside it") {
  Folder folder;
  const CsvOptions options{.limit = 48 * megabyte, .threads = 2};
  const auto most = [&](const std::string& name, const std::string& text, const char* words) {
    const Bytes bytes = gzipped(Bytes(text.begin(), text.end()));
    const std::string path = folder.write(name, bytes);
    const std::uint64_t budget = options.limit + bytes.size() + 3 * options.limit / 16 + 32 * megabyte;
    const auto [used, said] = most_memory([&] {
      try {
        (void)read_csv(path, options);
      } catch (const skein::FileError& e) { return std::string(e.what()); }
      return std::string("nothing");
    });
    INFO(name << ": " << used / megabyte << " MB of " << budget / megabyte << ": " << said);
    CHECK(said.find(words) != std::string::npos);
    CHECK(used < budget);
  };
  const char* const large = "becomes a table of more than";
  most("whole.csv.gz", times("1\n", 40 * megabyte), large);
  most("halves.csv.gz", times(".5\n", 40 * megabyte), large);
  most("last.csv.gz", times("1\n", 21 * megabyte) + "0.5\n", large);  // each value before it takes 8 bytes instead of 4
  most("columns.csv.gz", times(times(".5,", 600) + "1\n", 40 * megabyte), large);
  most("quote.csv.gz", "a,b\n1,\"" + times("x", 40 * megabyte), "is a quote never closed?");
  most("field.csv.gz", "a,b\n1,\"" + times("x", 40 * megabyte) + "\"\n", "has a line of more than 3145728 bytes");
  most("empty.csv.gz", "a\n1\n" + times("\n", 40 * megabyte) + "1\n", "line 3: is empty");
  std::string different = "a\n";
  for (int i = 0; different.size() < 40 * megabyte; ++i) different += std::to_string(i) + "-\n";
  most("texts.csv.gz", different, large);
}
#endif

TEST_CASE("a line that is longer than a block is read alone, and one beyond a 16th of the limit is refused by its byte") {
  Folder folder;
  const std::string before = "a,b\n" + times("1,2\n", 3 * megabyte), field = times("x\ny", 5 * megabyte);
  const std::string text = before + "\"" + field + "\",3\n" + times("4,5\n", 3 * megabyte);
  const auto same = [&](const skein::data::Table& table) {
    const std::string found = table.text(static_cast<std::int64_t>(before.size() - 4) / 4, 0);
    CHECK(found == field);
    CHECK(table.rows() == static_cast<std::int64_t>((before.size() - 4) / 4 + 1 + 3 * megabyte / 4));
    CHECK(table.number(table.rows() - 1, 1) == 5);
  };
  same(parse_csv(text, "t.csv", {.threads = 2}));
  same(read_csv(folder.write("t.csv", text), {.threads = 2}));
  const std::string refused = " (byte " + std::to_string(before.size()) +
                              "): has a line of more than 5000000 bytes, which begins there: is a quote never closed?";
  CHECK(thrown([&] { parse_csv(text, "t.csv", {.limit = 80'000'000, .threads = 1}); }).says("t.csv" + refused));
  CHECK(thrown([&] { read_csv(folder.path() + "/t.csv", {.limit = 80'000'000, .threads = 1}); }).says("t.csv" + refused));
  CHECK(parse_csv(before + "\"" + field + "\",3", "t.csv", {.threads = 1}).number(3 * megabyte / 4, 1) ==
        3);  // the last, without an end
}

TEST_CASE("a long text may begin with the mark of UTF-8 and a quote, and its lines may end in carriage returns") {
  const skein::data::CsvOptions options{.limit = 30'000'000, .threads = 2};  // a line has at most a 16th of it
  const std::string lines = times("1,2\n", 3 * megabyte), returns = "a,b\r" + times("1,2\r", 3 * megabyte);
  const auto table = parse_csv("\xEF\xBB\xBF\"a,\",b\n" + lines, "t.csv", options);
  CHECK(table.names().front() == "a,");
  CHECK(table.rows() == static_cast<std::int64_t>(lines.size() / 4));
  const auto ended = parse_csv(returns, "t.csv", options);
  CHECK(ended.rows() == table.rows());
  CHECK(ended.number(ended.rows() - 1, 1) == 2);
}

namespace skein::inline SKEIN_ABI::data::detail {
Table read_table(const std::function<CsvText()>& open, const CsvOptions& options);  // of csv.ipp
}

TEST_CASE("a file that is replaced by one of more columns between two passes is refused") {
  const std::string first = times("1\n", 2 * megabyte) + "x\n", second = "a,b,c\n1,2,3\n";  // a second pass, for texts
  const std::string* text = &first;
  const auto open = [&] { return skein::data::detail::CsvText(*std::exchange(text, &second), "t.csv", ',', 1 << 28); };
  CHECK(thrown([&] { skein::data::detail::read_table(open, {.threads = 1}); }).says("t.csv (byte 0): has 3 columns, and had 1"));
}
