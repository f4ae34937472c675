// SPDX-License-Identifier: Apache-2.0
// Within CSV text: fields, line ends that are not within quotes, and words for what is missing. For csv.ipp.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

/// A fault in CSV text: line from 1 and byte from 0, both within the text that the cursor was given.
struct CsvFault {
  std::int64_t line;
  std::size_t at;
  std::string what;
};

/// The fields that stand for no value.
class MissingWords {
 public:
  explicit MissingWords(const std::vector<std::string>& words);
  bool contains(std::string_view field) const {
    return field.empty() ? empty_ : field.size() <= longest_ && starts_[static_cast<unsigned char>(field[0])] && listed(field);
  }
  /// One of them is a number, as -999.
  bool has_number() const { return number_; }

 private:
  bool listed(std::string_view field) const;
  std::vector<std::string> words_;
  std::array<bool, 256> starts_{};  // by first character
  std::size_t longest_ = 0;
  bool empty_ = false, number_ = false;
};

/// How a number stands in a text: in the one way in which an integer is written; with zeros before it, as in a postcode, or with
/// more digits than a double holds, as in an account number; or with a point, a plus or an exponent.
enum class NumberForm { integer, padded, other };

/// Goes through text field by field. Throws CsvFault. The text must outlive it.
class CsvCursor {
 public:
  CsvCursor(std::string_view text, char separator)
      : begin_(text.data()), at_(begin_), field_(begin_), end_(begin_ + text.size()), separator_(separator) {}

  std::int64_t line() const { return line_; }
  std::size_t place() const { return static_cast<std::size_t>(at_ - begin_); }
  std::size_t field_place() const { return static_cast<std::size_t>(field_ - begin_); }
  /// Skips empty lines; false at the end of the text.
  bool more();
  enum class Next { field, line, unread };
  /// Reads a field, whose text lies in the cursor's text or is the cursor's until the next one, and says what follows.
  Next next(std::string_view& field);
  /// Reads a field that is a plain number; of any other it reads nothing: unread.
  Next next_number(double& number, NumberForm& form);

 private:
  Next behind_field();
  void quoted(std::string_view& field);
  bool blank(char c) const { return (c == ' ' || c == '\t') && c != separator_; }
  bool ends_field(char c) const { return c == separator_ || c == '\n' || c == '\r'; }

  const char *begin_, *at_, *field_, *end_;
  std::string unescaped_;
  std::int64_t line_ = 1;
  char separator_;
};

/// Reads all of the text, but for blanks behind it, as one finite number, or says that it is none. "nan" and "inf" are
/// none here.
bool parse_number(std::string_view text, double& number);
bool parse_number(std::string_view text, double& number, NumberForm& form);

/// Places in text that begins with a line: behind the first line end outside quotes of each of `parts` equal parts, and last
/// behind the last one in the text. Empty where the text has no whole line.
std::vector<std::size_t> line_cuts(std::string_view text, char separator, int parts);

}  // namespace skein::inline SKEIN_ABI::data::detail

#if !SKEIN_COMPILED
#include "csv_cursor.ipp"
#endif
