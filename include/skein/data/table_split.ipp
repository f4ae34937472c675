// SPDX-License-Identifier: Apache-2.0
// The bodies of table_split.hpp.
#pragma once
#include <algorithm>

#include "permutation.hpp"
#include "table_split.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

/// A number for each value: equal for equal values, numbered in the order of the values.
template <class T> std::vector<std::int64_t> numbered(const std::vector<T>& values) {
  std::vector<T> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::int64_t> numbers;
  numbers.reserve(values.size());
  for (const T& value : values) numbers.push_back(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
  return numbers;
}

/// The form of a date of ISO 8601, such as "0000-00-00T00:00+01:00" of 2020-01-09T08:30+01:00: each digit a 0, but those of the
/// zone, which count for the order. Empty for what is no such date: texts of one form sort as the times that they say.
SKEIN_INLINE std::string form_of_time(const std::string& text) {
  const std::string date = "0000-00-00", time = " 00:00:00.";
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  std::string form = text;
  std::size_t n = 0;
  for (; n < text.size(); ++n) {
    const char wanted = n < date.size() ? date[n] : n < date.size() + time.size() ? time[n - date.size()] : '0';
    if (wanted == '0' ? !digit(n) : text[n] != wanted && !(wanted == ' ' && text[n] == 'T')) break;
    if (wanted == '0') form[n] = '0';
  }
  const std::string zone = text.substr(n);
  const bool at_end = n == 10 || n == 16 || n == 19 || n > 20;
  const bool zoned = zone.empty() || (n > 10 && (zone == "Z" || zone[0] == '+' || zone[0] == '-'));
  const int month = n >= 7 ? (text[5] - '0') * 10 + text[6] - '0' : 0, day = n >= 10 ? (text[8] - '0') * 10 + text[9] - '0' : 0;
  return at_end && zoned && month >= 1 && month <= 12 && day >= 1 && day <= 31 ? form : std::string();
}

/// Throws ArgumentError for the first text that is no date, or one of another form than the first row's.
SKEIN_INLINE void check_times(const Table& table, int column) {
  const std::string first = table.rows() > 0 ? table.text(0, column) : "", form = form_of_time(first);
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const std::string text = table.text(row, column), own = form_of_time(text);
    if (own.empty())
      table.refuse(
          row, column, shown(text),
          "by_time() sorts texts, and such texts do not sort as time: write it as 2020-01-09 or 2020-01-09 08:30, in all "
          "rows, or as a number");
    if (own != form)
      table.refuse(row, column, shown(text),
                   skein::text("by_time() sorts texts, and data row {} has {}, which is written in another way: write all times "
                               "alike (of one zone, with as many digits), or as numbers",
                               table.stored_row(0) + 1, shown(first)));
  }
}

/// The numbers of the rows' values in a column, by their texts where it has some and `texts_first`, else by their order. Throws
/// where one is missing.
SKEIN_INLINE std::vector<std::int64_t> ranked(const Table& table, const std::string& name, const char* what, bool texts_first) {
  const int column = table.column(name);
  const bool by_text = table.is_text(column) || (texts_first && table.of(column).keeps_texts());
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    if (table.missing(row, column)) table.refuse(row, column, "no value", std::string("each row needs a ") + what);
    if (by_text) texts.push_back(table.text(row, column));
    else numbers.push_back(table.number(row, column));
  }
  return by_text ? numbered(texts) : numbered(numbers);
}

/// Rows whose key goes to the first part, in their order, and the others.
template <class InFirst> std::pair<Table, Table> part(const Table& table, const InFirst& in_first) {
  std::vector<std::int64_t> first, second;
  for (std::int64_t r = 0; r < table.rows(); ++r) (in_first(r) ? first : second).push_back(r);
  return {table.split_into({first.data(), first.size()}), table.split_into({second.data(), second.size()})};
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE std::pair<Table, Table> split(const Table& table, double fraction, Seed seed) {
  const std::int64_t head = detail::first_of_split(table.rows(), fraction);
  const Permutation order(table.rows(), seed, -1);
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = 0; i < table.rows(); ++i) (i < head ? first : second).push_back(order(i));
  return {table.split_into({first.data(), first.size()}), table.split_into({second.data(), second.size()})};
}

SKEIN_INLINE std::pair<Table, Table> split(const Table& table, double fraction, const Groups& groups, Seed seed) {
  const std::int64_t wanted = detail::first_of_split(table.rows(), fraction);
  const std::vector<std::int64_t> group = detail::ranked(table, groups.column, "group", true);
  const std::int64_t count = group.empty() ? 0 : 1 + *std::max_element(group.begin(), group.end());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count));
  for (const std::int64_t g : group) ++sizes[static_cast<std::size_t>(g)];
  const Permutation order(count, seed, -1);
  std::vector<char> in_first(static_cast<std::size_t>(count));
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < count && rows < wanted; ++i) {
    const auto g = static_cast<std::size_t>(order(i));
    in_first[g] = true;
    rows += sizes[g];
  }
  return detail::part(
      table, [&](std::int64_t r) { return in_first[static_cast<std::size_t>(group[static_cast<std::size_t>(r)])] != 0; });
}

SKEIN_INLINE std::pair<Table, Table> split(const Table& table, double fraction, const TimeOrder& time) {
  const std::int64_t wanted = detail::first_of_split(table.rows(), fraction);
  const std::vector<std::int64_t> moment = detail::ranked(table, time.column, "time", false);
  if (const int column = table.column(time.column); table.is_text(column)) detail::check_times(table, column);
  std::vector<std::int64_t> sorted = moment;
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t last = wanted > 0 ? sorted[static_cast<std::size_t>(wanted - 1)] : -1;
  return detail::part(table, [&](std::int64_t r) { return moment[static_cast<std::size_t>(r)] <= last; });
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
