// SPDX-License-Identifier: Apache-2.0
// Numbers as text for files and progress lines: appended to a string, so that a kept string allocates nothing, and always
// with a point, whatever the locale says. Not a formatting library: fmt is that, where its compile time does not matter.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The shortest text that reads back as the same number. NaN appends nothing (an empty field of a CSV file).
inline void append_number(std::string& text, double value) {
  if (value != value) return;
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}
/// Appends a whole number.
inline void append_integer(std::string& text, std::int64_t value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// A number with so many digits after the point; beyond 1e15 in scientific form; NaN as "nan".
inline void append_fixed(std::string& text, double value, int decimals) {
  char digits[48];
  const auto form = std::fabs(value) < 1e15 ? std::chars_format::fixed : std::chars_format::scientific;
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value, form, decimals).ptr);
}

/// A number with so many significant digits: 0.02513, 1.5e-07.
inline void append_digits(std::string& text, double value, int digits) {
  char buffer[48];
  text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr);
}

/// A field of a CSV file, quoted where it must be (RFC 4180).
inline void append_csv_field(std::string& text, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    text.append(field);
    return;
  }
  text += '"';
  for (const char c : field) text.append(c == '"' ? 2 : 1, c);
  text += '"';
}

}  // namespace skein::inline SKEIN_ABI::train
