// SPDX-License-Identifier: Apache-2.0
// The bodies of text.hpp.
#pragma once
#include "text.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE void append_number(std::string& text, double value) {
  if (value != value) return;
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

SKEIN_INLINE void append_integer(std::string& text, std::int64_t value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

SKEIN_INLINE void append_fixed(std::string& text, double value, int decimals) {
  char digits[48];
  const auto form = std::fabs(value) < 1e15 ? std::chars_format::fixed : std::chars_format::scientific;
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value, form, decimals).ptr);
}

SKEIN_INLINE void append_digits(std::string& text, double value, int digits) {
  char buffer[48];
  if (value != value) return static_cast<void>(text.append("nan"));  // and not "-nan": its sign says nothing
  text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr);
}

SKEIN_INLINE void append_csv_field(std::string& text, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    text.append(field);
    return;
  }
  text += '"';
  for (const char c : field) text.append(c == '"' ? 2 : 1, c);
  text += '"';
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
