// SPDX-License-Identifier: Apache-2.0
// The bodies of table.hpp.
#pragma once
#include <charconv>
#include <cmath>

#include "csv_cursor.hpp"
#include "table.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE std::string shown(std::string_view field) { return in_quotes(field, '"', 40); }

SKEIN_INLINE std::string rounded(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::general, 6).ptr};
}
SKEIN_INLINE std::string shortest(double number) {
  char text[32];
  constexpr double most = 9007199254740992.0;  // 2^53: whole numbers up to it are what stands in a file
  const bool whole = std::fabs(number) <= most && number == std::trunc(number) && !(number == 0 && std::signbit(number));
  return {text, whole ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(number)).ptr
                      : std::to_chars(text, text + sizeof text, number).ptr};
}

/// What to do where a number is wanted and the text is none.
SKEIN_INLINE std::string mend_of_number(std::string_view text) {
  std::string without, with_point(text);
  for (const char c : text)
    if (c != ',') without += c;
  double ignored = 0;
  const std::size_t comma = text.find(',');
  if (comma == text.npos || !parse_number(without, ignored))
    return "name that in CsvOptions::missing if it stands for no value, or take the column as categories, by one_hot or index";
  const bool decimal = text.find_first_of(",.", comma + 1) == text.npos;
  const bool thousands = !decimal || text.size() - comma == 4;
  with_point[comma] = '.';
  return "numbers have no thousands separators, and a point before the decimals: write " +
         (thousands ? without + (decimal ? ", or " + with_point : "") : with_point);
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Column::Column(std::string name, std::span<const double> numbers) : Column(std::move(name)) {
  for (const double number : numbers) {
    if (std::isinf(number)) throw ArgumentError("column " + in_quotes(name_, '"') + ": an infinite number cannot be in a table");
    number == number ? add(number) : add_missing();
  }
}

SKEIN_INLINE Column::Column(std::string name, std::span<const std::string> texts) : Column(std::move(name), Kind::texts) {
  for (const std::string& text : texts) text.empty() ? add_missing() : add(std::string_view(text));
}

SKEIN_INLINE std::uint64_t Column::bytes() const {
  return integers_.size() * sizeof(integers_[0]) + numbers_.size() * sizeof(numbers_[0]) + values_.size() * sizeof(values_[0]) +
         texts_.bytes();
}

SKEIN_INLINE bool Column::missing(std::int64_t row) const { return has_texts() ? code(row) < 0 : std::isnan(number(row)); }

SKEIN_INLINE std::string Column::text(std::int64_t row) const {
  if (missing(row)) return {};
  return has_texts() ? std::string(texts_[code(row)]) : detail::shortest(number(row));
}

SKEIN_INLINE void Column::add(double number, bool as_text) {
  if (!as_text && reworded_ < 0) reworded_ = size();
  if (keeps_texts()) {
    const std::int32_t code = texts_.add(detail::shortest(number));
    if (static_cast<std::size_t>(code) == values_.size()) values_.push_back(number);
    return integers_.push_back(code);
  }
  if (!wide()) {
    const bool whole = number > missing_integer && number <= std::numeric_limits<std::int32_t>::max() &&
                       static_cast<std::int32_t>(number) == number && !(number == 0 && std::signbit(number));
    if (whole) return integers_.push_back(static_cast<std::int32_t>(number));
    widen();
  }
  numbers_.push_back(number);
}

SKEIN_INLINE void Column::add_missing() {
  if (wide()) numbers_.push_back(missing_number);
  else integers_.push_back(has_texts() ? -1 : missing_integer);
}

SKEIN_INLINE void Column::widen() {
  constexpr std::size_t piece = 1 << 18;
  numbers_.resize(integers_.size());
  while (!integers_.empty()) {  // from behind, and what has been read is given back: never both arrays as a whole
    const std::size_t end = integers_.size(), begin = end > piece ? end - piece : 0;
    for (std::size_t i = begin; i < end; ++i) numbers_[i] = number(static_cast<std::int64_t>(i));
    integers_.shrink(begin);
  }
  storage_ = Storage::reals;
}

SKEIN_INLINE void Column::append(const Column& other) {
  if (is_text()) {
    std::vector<std::int32_t> here(static_cast<std::size_t>(other.texts_.size()));
    for (std::int32_t i = 0; i < other.texts_.size(); ++i) here[static_cast<std::size_t>(i)] = texts_.add(other.texts_[i]);
    const std::size_t before = integers_.size(), count = other.integers_.size();
    integers_.resize(before + count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t code = other.integers_[i];
      integers_[before + i] = code < 0 ? -1 : here[static_cast<std::size_t>(code)];
    }
    return;
  }
  if (other.reworded_ >= 0 && reworded_ < 0) reworded_ = size() + other.reworded_;
  if (keeps_texts() || other.keeps_texts()) return append_by_text(other);
  if (other.wide() && !wide()) widen();
  if (!wide()) integers_.append(other.integers_.data(), other.integers_.size());
  else if (other.wide()) numbers_.append(other.numbers_.data(), other.numbers_.size());
  else
    for (std::int64_t i = 0; i < other.size(); ++i) numbers_.push_back(other.number(i));
}

SKEIN_INLINE void Column::append_by_text(const Column& other) {
  Column both(name_, Kind::texts);
  for (const Column* part : {static_cast<const Column*>(this), &other})
    for (std::int64_t i = 0; i < part->size(); ++i)
      part->missing(i) ? both.add_missing() : both.add(std::string_view(part->text(i)));
  both.take_as_numbers();
  both.reworded_ = reworded_;
  *this = std::move(both);
}

SKEIN_INLINE void Column::take_as_numbers() {
  values_.resize(static_cast<std::size_t>(texts_.size()));
  for (std::int32_t i = 0; i < texts_.size(); ++i) detail::parse_number(texts_[i], values_[static_cast<std::size_t>(i)]);
  storage_ = Storage::numbers_of_texts;
}

SKEIN_INLINE void Column::clear() {
  integers_.clear();
  numbers_.clear();
  texts_.clear();
  values_.clear();
  if (!is_text()) storage_ = Storage::integers;
  reworded_ = -1;
}

SKEIN_INLINE Table::Table(std::vector<Column> columns, std::string path) : path_(std::move(path)) {
  for (const Column& c : columns)
    if (c.size() != columns.front().size())
      throw ShapeError(skein::text("{}: column {} has {} values, column {} has {}", path_, in_quotes(columns.front().name(), '"'),
                                   columns.front().size(), in_quotes(c.name(), '"'), c.size()));
  rows_ = columns.empty() ? 0 : columns.front().size();
  columns_ = std::make_shared<const std::vector<Column>>(std::move(columns));
}

SKEIN_INLINE std::vector<std::string> Table::names() const {
  std::vector<std::string> all;
  for (const Column& c : *columns_) all.push_back(c.name());
  return all;
}

SKEIN_INLINE bool Table::contains(std::string_view name) const {
  for (const Column& c : *columns_)
    if (c.name() == name) return true;
  return false;
}

SKEIN_INLINE int Table::column(std::string_view name) const {
  int found = -1;
  for (int i = 0; i < columns(); ++i) {
    if (of(i).name() != name) continue;
    if (found >= 0)
      throw ArgumentError(skein::text("{} has two columns {}, {} and {}: give one of them another name", path_,
                                      in_quotes(name, '"'), found + 1, i + 1));
    found = i;
  }
  if (found >= 0) return found;
  TextList known;
  for (int i = 0; i < std::min(columns(), 20); ++i) known.add(printable(of(i).name()));
  std::string mend;
  if (columns() == 1)
    if (const std::size_t at = of(0).name().find_first_of(";\t|"); at != std::string::npos) {
      const std::string other = of(0).name()[at] == '\t' ? "\\t" : std::string(1, of(0).name()[at]);
      mend = ", in one column: if its fields are separated by '" + other + "', read it with {.separator = '" + other + "'}";
    }
  throw ArgumentError(path_ + " has no column " + in_quotes(name, '"') + "; it has: " + known.text() + mend);
}

SKEIN_INLINE void Table::refuse(std::int64_t row, int column, const std::string& what, const std::string& mend) const {
  throw ArgumentError(skein::text("{}: column {} has {} in data row {}: {}", path_, in_quotes(of(column).name(), '"'), what,
                                  stored_row(row) + 1, mend));
}

SKEIN_INLINE double Table::number(std::int64_t row, int column) const {
  const Column& c = of(column);
  if (!c.is_text()) return c.number(stored_row(row));
  for (std::int64_t i = 0; i < c.size(); ++i) {
    double ignored = 0;
    if (c.code(i) < 0) continue;
    const std::string_view text = c.texts()[c.code(i)];
    if (detail::parse_number(text, ignored)) continue;
    throw ArgumentError(skein::text("{}: column {} is a text column, since data row {} has {}: {}", path_,
                                    in_quotes(c.name(), '"'), i + 1, detail::shown(text), detail::mend_of_number(text)));
  }
  throw ArgumentError(path_ + ": column " + in_quotes(c.name(), '"') + " is a text column: take it out of CsvOptions::text");
}

SKEIN_INLINE std::vector<double> Table::numbers(std::string_view column) const {
  const int c = this->column(column);
  std::vector<double> all;
  for (std::int64_t r = 0; r < rows_; ++r) all.push_back(number(r, c));
  return all;
}

SKEIN_INLINE std::vector<std::string> Table::texts(std::string_view column) const {
  const int c = this->column(column);
  std::vector<std::string> all;
  for (std::int64_t r = 0; r < rows_; ++r) all.push_back(text(r, c));
  return all;
}

SKEIN_INLINE Table Table::subset(std::span<const std::int64_t> rows) const {
  std::vector<std::int64_t> stored;
  for (const std::int64_t r : rows) {
    if (r < 0 || r >= rows_) throw ArgumentError(skein::text("{}: row {} is not one of {}", path_, r, rows_));
    stored.push_back(stored_row(r));
  }
  Table result = *this;
  result.rows_ = static_cast<std::int64_t>(stored.size());
  result.chosen_ = std::make_shared<const std::vector<std::int64_t>>(std::move(stored));
  result.split_ = 0;
  return result;
}

SKEIN_INLINE Table Table::split_into(std::span<const std::int64_t> rows) const {
  Table result = subset(rows);
  result.split_ = detail::hash_of_split(rows, split_);
  return result;
}

SKEIN_INLINE Table Table::drop_missing(std::initializer_list<std::string_view> names) const {
  std::vector<int> looked_at;
  for (const std::string_view name : names) looked_at.push_back(column(name));
  for (int c = 0; names.size() == 0 && c < columns(); ++c) looked_at.push_back(c);
  std::vector<std::int64_t> kept;
  for (std::int64_t r = 0; r < rows_; ++r) {
    bool whole = true;
    for (const int c : looked_at) whole = whole && !missing(r, c);
    if (whole) kept.push_back(r);
  }
  return subset({kept.data(), kept.size()});
}

SKEIN_INLINE float Table::number_as_float(std::int64_t row, int column) const {
  const double value = number(row, column);
  if (value != value) refuse(row, column, "no value", "drop such rows by drop_missing(), or let a TableEncoder fill them");
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) refuse(row, column, detail::shortest(value), "a float holds numbers up to 3.4e38");
  return narrow;
}

SKEIN_INLINE InMemory<float> Table::dataset(std::string_view target) const {
  const int t = column(target);
  std::vector<float> y;
  for (std::int64_t r = 0; r < rows_; ++r) y.push_back(number_as_float(r, t));
  return InMemory<float>(sample(), others(t), std::move(y), 1).made_by({.split = split_});
}

SKEIN_INLINE InMemory<float> Table::labelled(std::string_view target) const {
  const int t = column(target);
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < rows_; ++r) {
    const double v = number(r, t);
    if (!(v >= 0 && v <= 2147483646.0) || v != std::floor(v))
      refuse(r, t, v == v ? detail::shortest(v) : "no value", "a class number 0, 1, 2, ... is wanted");
    labels.push_back(static_cast<std::int32_t>(v));
  }
  return InMemory<float>(sample(), others(t), std::move(labels)).made_by({.split = split_});
}

SKEIN_INLINE Extents Table::sample() const {
  if (columns() < 2) throw ArgumentError(path_ + " has one column: a data set needs a target and at least one other");
  return {1, {columns() - 1}};
}

SKEIN_INLINE std::vector<float> Table::others(int target) const {
  std::vector<float> x;
  x.reserve(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns() - 1));
  for (std::int64_t r = 0; r < rows_; ++r)
    for (int c = 0; c < columns(); ++c)
      if (c != target) x.push_back(number_as_float(r, c));
  return x;
}

}  // namespace skein::inline SKEIN_ABI::data
