// SPDX-License-Identifier: Apache-2.0
// Numbers as text for files and progress lines: appended to a string, so that a kept string allocates nothing, and always
// with a point, whatever the locale says. Not a formatting library: messages are made by core/text.hpp.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The shortest text that reads back as the same number. NaN appends nothing (an empty field of a CSV file).
void append_number(std::string& text, double value);
/// Appends a whole number.
void append_integer(std::string& text, std::int64_t value);

/// A number with so many digits after the point; beyond 1e15 in scientific form; NaN as "nan".
void append_fixed(std::string& text, double value, int decimals);

/// A number with so many significant digits: 0.02513, 1.5e-07.
void append_digits(std::string& text, double value, int digits);

/// A field of a CSV file, quoted where it must be (RFC 4180).
void append_csv_field(std::string& text, std::string_view field);

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "text.ipp"
#endif
