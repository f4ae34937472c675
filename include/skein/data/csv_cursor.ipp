// SPDX-License-Identifier: Apache-2.0
// The bodies of csv_cursor.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "csv_cursor.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

SKEIN_INLINE MissingWords::MissingWords(const std::vector<std::string>& words) : words_(words) {
  for (const std::string& word : words_) {
    longest_ = std::max(longest_, word.size());
    if (word.empty()) empty_ = true;
    else starts_[static_cast<unsigned char>(word[0])] = true;
    double ignored = 0;
    number_ = number_ || parse_number(word, ignored);
  }
}

SKEIN_INLINE bool MissingWords::listed(std::string_view field) const {
  return std::find(words_.begin(), words_.end(), field) != words_.end();
}

SKEIN_INLINE bool CsvCursor::more() {
  while (at_ < end_ && (*at_ == '\n' || *at_ == '\r')) behind_field();
  return at_ < end_;
}

SKEIN_INLINE CsvCursor::Next CsvCursor::behind_field() {
  if (at_ == end_) return Next::line;
  if (*at_ == separator_) return ++at_, Next::field;
  if (*at_ == '\r' && at_ + 1 < end_ && at_[1] == '\n') ++at_;
  ++at_, ++line_;
  return Next::line;
}

SKEIN_INLINE CsvCursor::Next CsvCursor::next(std::string_view& field) {
  field_ = at_;
  while (at_ < end_ && blank(*at_)) ++at_;
  if (at_ < end_ && *at_ == '"') {
    quoted(field);
  } else {
    const char* const start = at_;
    while (at_ < end_ && !ends_field(*at_)) ++at_;
    field = {start, static_cast<std::size_t>(at_ - start)};
    while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  }
  return behind_field();
}

/// The number that begins at `at`, and where it ends; null where it is none, or one of more digits or with an exponent. Quotient
/// and operands are doubles, rounded once: what from_chars gives (Clinger, "How to read floating point numbers accurately",
/// 1990).
inline const char* plain_number(const char* at, const char* end, double& number, NumberForm& form) {
  static constexpr double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};
  const bool negative = at < end && *at == '-';
  at += negative;
  const char* const most = end - at > 16 ? at + 16 : end;  // a point and 15 digits, which a double holds
  std::uint64_t digits = 0;
  const char* const first = at;
  while (at < most && static_cast<unsigned char>(*at - '0') < 10) digits = 10 * digits + static_cast<std::uint64_t>(*at++ - '0');
  std::ptrdiff_t count = at - first, behind = 0;
  form = count > 1 && *first == '0' ? NumberForm::padded : NumberForm::integer;
  if (at < most && *at == '.') {
    const char* const point = at++;
    while (at < most && static_cast<unsigned char>(*at - '0') < 10)
      digits = 10 * digits + static_cast<std::uint64_t>(*at++ - '0');
    behind = at - point - 1;
    count += behind;
    form = NumberForm::other;
  }
  if (count == 0 || count > 15) return nullptr;
  const double magnitude = static_cast<double>(digits) / powers[behind];
  number = negative ? -magnitude : magnitude;
  return at;
}

/// The form of a number that plain_number() does not take. Integers up to 2^53 are the doubles of that value.
inline NumberForm form_of_long(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() < 16 || digits.find_first_not_of("0123456789") != digits.npos) return NumberForm::other;
  const bool exact = digits.size() == 16 && digits.front() != '0' && digits <= "9007199254740992";
  return exact ? NumberForm::integer : NumberForm::padded;
}

SKEIN_INLINE CsvCursor::Next CsvCursor::next_number(double& number, NumberForm& form) {
  const char* at = plain_number(at_, end_, number, form);
  if (!at || (at != end_ && !ends_field(*at))) {
    const auto [stop, error] = std::from_chars(at_, end_, number);
    if (error != std::errc{} || !std::isfinite(number) || (stop != end_ && !ends_field(*stop))) return Next::unread;
    at = stop;
    form = form_of_long({at_, static_cast<std::size_t>(stop - at_)});
  }
  field_ = std::exchange(at_, at);
  return behind_field();
}

SKEIN_INLINE void CsvCursor::quoted(std::string_view& field) {
  const char* const open = at_++;
  const std::int64_t line = line_;
  const char* from = at_;
  unescaped_.clear();
  while (true) {
    const char* const quote = static_cast<const char*>(std::memchr(at_, '"', static_cast<std::size_t>(end_ - at_)));
    if (!quote) throw CsvFault{line, static_cast<std::size_t>(open - begin_), "a quote is never closed"};
    line_ += std::count(at_, quote, '\n');
    at_ = quote + 1;
    if (at_ == end_ || *at_ != '"') break;
    unescaped_.append(from, at_);  // with one quote of the two
    from = ++at_;
  }
  const std::string_view rest(from, static_cast<std::size_t>(at_ - 1 - from));
  field = unescaped_.empty() ? rest : unescaped_.append(rest);
  while (at_ < end_ && blank(*at_)) ++at_;
  if (at_ < end_ && !ends_field(*at_)) throw CsvFault{line_, place(), "text follows a closing quote"};
}

/// Whether a number beyond the range of double is next to 0, as 1e-400 is. Not by strtod, which asks the locale for the point.
inline bool too_small(std::string_view text) {
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const auto point = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size())),
             first = static_cast<std::ptrdiff_t>(digits.find_first_of("123456789"));
  std::ptrdiff_t exponent = 0;
  text.remove_prefix(std::min(e + 1, text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  if (std::from_chars(text.data(), text.data() + text.size(), exponent).ec == std::errc::result_out_of_range)
    return text.starts_with('-');
  return exponent < (first < point ? first - point + 1 : first - point);
}

SKEIN_INLINE bool parse_number(std::string_view text, double& number) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return false;
  if (error == std::errc::result_out_of_range) {  // as good as 0, or too large, which is no number here
    number = text.front() == '-' ? -0.0 : 0.0;
    return too_small(text);
  }
  return error == std::errc{} && std::isfinite(number);
}

SKEIN_INLINE bool parse_number(std::string_view text, double& number, NumberForm& form) {
  double same = 0;
  const char* const end = text.data() + text.size();
  if (plain_number(text.data(), end, same, form) != end) form = form_of_long(text);
  return parse_number(text, number);
}

inline const char* find_char(const char* from, const char* to, char c) {
  return from < to ? static_cast<const char*>(std::memchr(from, c, static_cast<std::size_t>(to - from))) : nullptr;
}

/// Finds the line ends of a text that ends at `end`: line feeds, and carriage returns that no line feed follows before `end`.
struct LineEnds {
  const char* end;

  bool is_behind(const char* at) const { return at[-1] == '\n' || (at[-1] == '\r' && at < end && *at != '\n'); }
  /// Behind the first in [from, to), a carriage return where there is no line feed; null where there is none.
  const char* behind_first(const char* from, const char* to) const {
    if (const char* const feed = find_char(from, to, '\n')) return feed + 1;
    const char* found = find_char(from, to, '\r');
    while (found && !is_behind(found + 1)) found = find_char(found + 1, to, '\r');
    return found ? found + 1 : nullptr;
  }
  const char* behind_last(const char* from, const char* to) const {
    while (to > from && !is_behind(to)) --to;
    return to > from ? to : nullptr;
  }
};

SKEIN_INLINE std::vector<std::size_t> line_cuts(std::string_view text, char separator, int parts) {
  std::vector<std::size_t> found;
  const char *const begin = text.data(), *const end = begin + text.size();
  const char *at = begin, *last = nullptr;
  const LineEnds line_ends{end};
  while (at < end) {
    const char* const quote = find_char(at, end, '"');
    const char* const gap_end = quote ? quote : end;  // no quotes in [at, gap_end), which lies outside quotes
    while (static_cast<int>(found.size()) + 1 < parts) {
      const char* const target = begin + text.size() * (found.size() + 1) / static_cast<std::size_t>(parts);
      const char* const line = line_ends.behind_first(std::max(at, target), gap_end);
      if (!line) break;
      found.push_back(static_cast<std::size_t>(line - begin));
      at = line;
    }
    if (const char* const line = line_ends.behind_last(at, gap_end)) last = line;
    else if (at > begin && line_ends.is_behind(at)) last = at;
    if (!quote) break;
    const char* before = quote;
    while (before > at && (before[-1] == ' ' || before[-1] == '\t') && before[-1] != separator) --before;
    const bool opens = before == begin || before[-1] == separator || before[-1] == '\n' || before[-1] == '\r';
    at = quote + 1;
    if (!opens) continue;  // a quote in the middle of a field is a character like others
    while (true) {
      const char* const close = find_char(at, end, '"');
      at = close ? close + 1 : end;
      if (at == end || *at != '"') break;
      ++at;
    }
  }
  if (last && (found.empty() || found.back() < static_cast<std::size_t>(last - begin)))
    found.push_back(static_cast<std::size_t>(last - begin));
  return found;
}

}  // namespace skein::inline SKEIN_ABI::data::detail
