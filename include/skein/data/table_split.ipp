// SPDX-License-Identifier: Apache-2.0
// The bodies of table_split.hpp.
#pragma once
#include <algorithm>

#include "permutation.hpp"
#include "table_split.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE std::int64_t rows_of_first(const Table& table, double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) throw ArgumentError("split: the fraction must lie between 0 and 1");
  return static_cast<std::int64_t>(static_cast<double>(table.rows()) * fraction + 0.5);
}

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

/// The numbers of the rows' values in a column. Throws where one is missing.
SKEIN_INLINE std::vector<std::int64_t> ranked(const Table& table, const std::string& name, const char* what) {
  const int column = table.column(name);
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    if (table.missing(row, column)) table.refuse(row, column, "no value", std::string("each row needs a ") + what);
    if (table.is_text(column)) texts.push_back(table.text(row, column));
    else numbers.push_back(table.number(row, column));
  }
  return table.is_text(column) ? numbered(texts) : numbered(numbers);
}

/// Rows whose key goes to the first part, in their order, and the others.
template <class InFirst> std::pair<Table, Table> part(const Table& table, const InFirst& in_first) {
  std::vector<std::int64_t> first, second;
  for (std::int64_t r = 0; r < table.rows(); ++r) (in_first(r) ? first : second).push_back(r);
  return {table.subset(first), table.subset(second)};
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE std::pair<Table, Table> split(const Table& table, double fraction, Seed seed) {
  const std::int64_t head = detail::rows_of_first(table, fraction);
  const Permutation order(table.rows(), seed, -1);
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = 0; i < table.rows(); ++i) (i < head ? first : second).push_back(order(i));
  return {table.subset(first), table.subset(second)};
}

SKEIN_INLINE std::pair<Table, Table> split(const Table& table, double fraction, const Groups& groups, Seed seed) {
  const std::int64_t wanted = detail::rows_of_first(table, fraction);
  const std::vector<std::int64_t> group = detail::ranked(table, groups.column, "group");
  const std::int64_t count = group.empty() ? 0 : 1 + *std::max_element(group.begin(), group.end());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count));
  for (const std::int64_t g : group) ++sizes[static_cast<std::size_t>(g)];
  const Permutation order(count, seed, -1);
  std::vector<bool> in_first(static_cast<std::size_t>(count));
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < count && rows < wanted; ++i) {
    const auto g = static_cast<std::size_t>(order(i));
    in_first[g] = true;
    rows += sizes[g];
  }
  return detail::part(table,
                      [&](std::int64_t r) { return in_first[static_cast<std::size_t>(group[static_cast<std::size_t>(r)])]; });
}

SKEIN_INLINE std::pair<Table, Table> split(const Table& table, double fraction, const TimeOrder& time) {
  const std::int64_t wanted = detail::rows_of_first(table, fraction);
  const std::vector<std::int64_t> moment = detail::ranked(table, time.column, "time");
  std::vector<std::int64_t> sorted = moment;
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t last = wanted > 0 ? sorted[static_cast<std::size_t>(wanted - 1)] : -1;
  return detail::part(table, [&](std::int64_t r) { return moment[static_cast<std::size_t>(r)] <= last; });
}

}  // namespace skein::inline SKEIN_ABI::data

SKEIN_END_COLD
