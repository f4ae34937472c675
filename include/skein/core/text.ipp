// SPDX-License-Identifier: Apache-2.0
// The bodies of text.hpp.
#pragma once
#include <utility>

#include "text.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::detail {

SKEIN_INLINE void TextValue::append_to(std::string& to) const {
  char digits[40];
  char* end = digits;
  switch (kind_) {
    case Kind::words:
      to.append(words_);
      return;
    case Kind::character:
      to.push_back(static_cast<char>(number_));
      return;
    case Kind::number:
      end = std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(number_)).ptr;
      break;
    case Kind::count:
      end = std::to_chars(digits, digits + sizeof digits, static_cast<std::uint64_t>(count_)).ptr;
      break;
    case Kind::real:
      if (real_ != real_) return static_cast<void>(to.append("nan"));  // and not "-nan": its sign says nothing
      end = narrow_ ? std::to_chars(digits, digits + sizeof digits, static_cast<float>(real_)).ptr
                    : std::to_chars(digits, digits + sizeof digits, real_).ptr;
      break;
  }
  to.append(digits, end);
}

SKEIN_NOINLINE SKEIN_INLINE std::string fill_text(std::string_view pattern, const TextValue* value) {
  std::string filled;
  filled.reserve(pattern.size() + 32);
  for (std::size_t at = pattern.find("{}"); at != pattern.npos; at = pattern.find("{}"), ++value) {
    filled.append(pattern.substr(0, at));
    value->append_to(filled);
    pattern.remove_prefix(at + 2);
  }
  return filled.append(pattern);
}

SKEIN_INLINE std::size_t utf8_length(std::string_view words) {
  const auto byte = [&](std::size_t i) { return i < words.size() ? static_cast<unsigned char>(words[i]) : 0u; };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(i) >> 6 != 2) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool none = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);  // surrogates; beyond U+10FFFF
  return overlong || none ? 0 : length;
}

/// Is this character one that is shown.
SKEIN_INLINE bool shown(std::string_view character, Lines lines) {
  const unsigned char first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return (first >= 0x20 && first != 0x7f) || (lines == Lines::keep && (first == '\n' || first == '\t'));
  if (character.size() == 2 && first == 0xc2) return static_cast<unsigned char>(character[1]) >= 0xa0;  // not U+0080 to U+009F
  return !(character >= "\xe2\x80\xa8" && character <= "\xe2\x80\xae") &&  // line ends, overrides of the direction
         !(character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9");    // isolates
}

}  // namespace skein::inline SKEIN_ABI::detail

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE TextList& TextList::add(const detail::TextValue& value) {
  if (!std::exchange(empty_, false)) text_ += separator_;
  value.append_to(text_);
  return *this;
}

SKEIN_INLINE std::string printable(std::string_view words, Lines lines) {
  constexpr const char* digits = "0123456789abcdef";
  std::string to;
  to.reserve(words.size());
  while (!words.empty()) {
    const std::size_t length = detail::utf8_length(words), n = length > 0 ? length : 1;
    if (length > 0 && detail::shown(words.substr(0, n), lines)) to.append(words.substr(0, n));
    else
      for (const char c : words.substr(0, n))
        to.append("\\x").append(1, digits[static_cast<unsigned char>(c) >> 4]).append(1, digits[c & 15]);
    words.remove_prefix(n);
  }
  return to;
}

SKEIN_INLINE std::string in_quotes(std::string_view words, char mark, std::size_t most) {
  std::size_t cut = words.size() < most ? words.size() : most;
  if (cut < words.size())  // not within a character
    while (cut > 0 && cut + 3 > most && (static_cast<unsigned char>(words[cut]) >> 6) == 2) --cut;
  return text("{}{}{}{}", mark, printable(words.substr(0, cut)), cut < words.size() ? "..." : "", mark);
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
