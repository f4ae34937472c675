// SPDX-License-Identifier: Apache-2.0
// The bodies of table_categories.hpp.
#pragma once
#include <algorithm>

#include "../core/error.hpp"
#include "csv_cursor.hpp"
#include "table_categories.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE bool is_short_number(std::string_view text) {
  double number = 0;
  return parse_number(text, number) && shortest(number) == text;
}

SKEIN_INLINE std::string category_text(double number) { return shortest(number == 0 ? 0.0 : number); }

SKEIN_INLINE std::string as_number(std::string_view text) {
  double number = 0;
  return parse_number(text, number) ? category_text(number) : std::string(text);
}

SKEIN_INLINE CategoryOf::CategoryOf(const Column& column, const std::vector<std::string>& categories, bool of_texts)
    : column_(column), of_texts_(of_texts) {
  for (const std::string& category : categories) known_.add(of_texts ? category : as_number(category));  // a file may say 1e+15
  if (column.is_text())
    for (std::int32_t i = 0; i < column.texts().size(); ++i)
      numbers_.push_back(of_texts ? find(column.texts()[i]) : find(as_number(column.texts()[i])));
}

SKEIN_INLINE std::vector<std::string> categories_of(const Table& table, int column) {
  std::vector<std::string> all;
  if (table.is_text(column)) {
    std::vector<char> seen(static_cast<std::size_t>(table.of(column).texts().size()));
    for (std::int64_t r = 0; r < table.rows(); ++r)
      if (!table.missing(r, column)) seen[static_cast<std::size_t>(table.of(column).code(table.stored_row(r)))] = true;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i]) all.emplace_back(table.of(column).texts()[static_cast<std::int32_t>(i)]);
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<double> numbers;
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (!table.missing(r, column)) numbers.push_back(table.number(r, column));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const double v : numbers) all.push_back(category_text(v));
  return all;
}

SKEIN_INLINE void check_given(const std::vector<std::string>& categories, const std::string& column) {
  TextPool given;
  const bool numbers = std::all_of(categories.begin(), categories.end(), [](const std::string& c) { return is_short_number(c); });
  for (const std::string& category : categories)  // of numbers 0 and -0 are one
    if (const std::int32_t before = given.size(); given.add(numbers ? as_number(category) : category) != before)
      throw ArgumentError("table encoder: the category " + in_quotes(category, '"') + " of column " + in_quotes(column, '"') +
                          " is given twice: name it once");
}

SKEIN_INLINE void check_repeats(const Table& table, int column, std::size_t categories, bool label) {
  std::size_t values = 0;
  for (std::int64_t r = 0; r < table.rows(); ++r) values += !table.missing(r, column);
  if (categories <= 50 || categories < values) return;
  throw ArgumentError(skein::text(
      "{}: column {} has another {} in each of its {} training rows: {}", table.path(), in_quotes(table.of(column).name(), '"'),
      (label ? "class" : "category"), values,
      (label ? "take what is predicted as a number by target() or standardize_target()"
             : "take numbers by standardize(), leave out a column that numbers or names the rows, or give the .categories")));
}

SKEIN_INLINE void check_exact(const Table& table, int column) {
  const Column& c = table.of(column);
  if (c.is_text() || (c.first_reworded() < 0 && !c.keeps_texts())) return;
  constexpr double most = 9007199254740992.0;  // 2^53: above it a double is several whole numbers
  for (std::int64_t r = 0; r < table.rows(); ++r)
    if (const double v = table.number(r, column); v >= most || v <= -most)
      table.refuse(r, column, shortest(v),
                   "a double tells whole numbers apart below 9007199254740992, so that two categories may be one here: read it "
                   "with {.text = {\"" +
                       c.name() + "\"}}");
}

SKEIN_INLINE void check_kind(const Table& table, int column) {
  const Column& c = table.of(column);
  const std::int64_t first = c.is_text() ? -1 : c.first_reworded();
  if (first < 0) return;
  std::int64_t chosen = 0;  // of which the text is not known
  while (chosen < table.rows() && (table.stored_row(chosen) < first || table.missing(chosen, column))) ++chosen;
  if (chosen == table.rows()) return;
  const std::int64_t row = table.stored_row(chosen);
  throw ArgumentError(table.path() + ": column " + in_quotes(c.name(), '"') +
                      " is taken as texts, as in the training rows or the given categories, and was read as numbers here, of "
                      "which " +
                      shortest(c.number(row)) + " in data row " + std::to_string(row + 1) +
                      " may stand otherwise in the file: read it with {.text = {\"" + c.name() + "\"}}");
}

}  // namespace skein::inline SKEIN_ABI::data::detail
