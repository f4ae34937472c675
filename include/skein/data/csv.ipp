// SPDX-License-Identifier: Apache-2.0
// The bodies of csv.hpp.
#pragma once
#include "csv.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE std::int64_t Table::column(std::string_view name) const {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<std::int64_t>(i);
  std::string known;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 20); ++i) known += (i ? ", " : "") + names[i];
  throw ArgumentError(path + " has no column \"" + std::string(name) + "\"; it has: " + known);
}

SKEIN_INLINE InMemory<float> Table::dataset(std::string_view target) const {
  const std::int64_t t = column(target);
  std::vector<float> y;
  for (std::int64_t r = 0; r < rows; ++r) y.push_back(static_cast<float>(at(r, t)));
  return InMemory<float>(sample(), others(t), std::move(y), 1);
}

SKEIN_INLINE InMemory<float> Table::labelled(std::string_view target) const {
  const std::int64_t t = column(target);
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double v = at(r, t);
    if (!(v >= 0 && v <= 2147483646.0) || v != std::floor(v))
      throw FileError(path, -1,
                      "column \"" + names[static_cast<std::size_t>(t)] + "\" has " + std::to_string(v) + " in data row " +
                          std::to_string(r + 1) + ": a class number 0, 1, 2, ... is wanted");
    labels.push_back(static_cast<std::int32_t>(v));
  }
  return InMemory<float>(sample(), others(t), std::move(labels));
}

SKEIN_INLINE Extents Table::sample() const {
  if (columns() < 2) throw ArgumentError(path + " has one column: a data set needs a target and at least one other");
  return {1, {static_cast<int>(columns() - 1)}};
}

SKEIN_INLINE std::vector<float> Table::others(std::int64_t target) const {
  std::vector<float> x;
  x.reserve(values.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns(); ++c)
      if (c != target) x.push_back(static_cast<float>(at(r, c)));
  return x;
}

}  // namespace skein::inline SKEIN_ABI::data

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE CsvParser::CsvParser(std::string_view text, const std::string& path, char separator)
    : text_(text), path_(path), separator_(separator) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  if (separator == '"' || separator == '\n' || separator == '\r')
    throw ArgumentError("a CSV separator cannot be a quote or a line end");
}

SKEIN_INLINE bool CsvParser::more() {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  return at_ < text_.size();
}

SKEIN_INLINE bool CsvParser::next(std::string& field) {
  field.clear();
  start_ = at_;
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t') && text_[at_] != separator_) ++at_;
  if (at_ < text_.size() && text_[at_] == '"') quoted(field);
  else
    while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r') field += text_[at_++];
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.pop_back();
  if (at_ == text_.size()) return false;
  if (text_[at_] == separator_) return ++at_, true;
  if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
  ++at_, ++line_;
  return false;
}

SKEIN_INLINE void CsvParser::fail(std::int64_t line, std::size_t at, const std::string& what) const {
  throw FileError(path_, static_cast<long long>(at), "line " + std::to_string(line) + ": " + what);
}

SKEIN_INLINE void CsvParser::quoted(std::string& field) {
  const std::int64_t line = line_;
  const std::size_t open = at_++;
  while (true) {
    if (at_ == text_.size()) fail(line, open, "a quote is never closed");
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (c != '"') {
      field += c;
      continue;
    }
    if (at_ == text_.size() || text_[at_] != '"') break;
    field += '"', ++at_;
  }
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t') && text_[at_] != separator_) ++at_;
  if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r')
    fail(line_, at_, "text follows a closing quote");
}

SKEIN_INLINE bool parse_number(std::string_view text, double& value) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

SKEIN_INLINE std::string shown(std::string_view field) {
  std::string s;
  for (const char c : field.substr(0, 40)) s += c >= 32 && c < 127 ? c : '?';
  return "\"" + s + (field.size() > 40 ? "...\"" : "\"");
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Table parse_csv(std::string_view text, const std::string& path, const CsvOptions& options) {
  detail::CsvParser parser(text, path, options.separator);
  Table table;
  table.path = path;
  std::vector<std::string> first;
  std::string field;
  std::size_t columns = 0;
  for (bool top = true; parser.more(); top = false) {
    const std::int64_t line = parser.line();
    std::size_t count = 0, row_begin = table.values.size(), bad_at = 0;
    std::string bad;
    for (bool following = true; following; ++count) {
      following = parser.next(field);
      double value = 0;
      const bool number = detail::parse_number(field, value);
      if (!number && bad_at == 0 && bad.empty()) bad = detail::shown(field), bad_at = parser.field_start();
      if (top) first.push_back(field);
      else if (!number)
        parser.fail(line, parser.field_start(),
                    "column " + std::to_string(count + 1) + " is " + detail::shown(field) + ", not a number");
      else if (count == columns)
        parser.fail(line, parser.field_start(), "has more than the " + std::to_string(columns) + " fields of the first line");
      table.values.push_back(value);
    }
    if (top) {
      columns = count;
      const bool named = options.header == Header::present || (options.header == Header::automatic && !bad.empty());
      if (!named && !bad.empty())
        parser.fail(line, bad_at, bad + " is not a number, and the options say that there is no header");
      if (named) table.values.resize(row_begin);
      else table.rows = 1;
      for (std::size_t i = 0; i < columns; ++i) table.names.push_back(named ? first[i] : std::to_string(i));
    } else {
      if (count < columns)
        parser.fail(line, parser.field_start(),
                    "has " + std::to_string(count) + " fields, the first line has " + std::to_string(columns));
      ++table.rows;
    }
  }
  if (columns == 0) throw FileError(path, 0, "is empty: a table of numbers is wanted");
  return table;
}

SKEIN_INLINE Table read_csv(const std::string& path, const CsvOptions& options) {
  ByteSource source(path);
  const std::vector<unsigned char> bytes = source.rest(options.limit);
  return parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, options);
}

}  // namespace skein::inline SKEIN_ABI::data
