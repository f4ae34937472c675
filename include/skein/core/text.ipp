// SPDX-License-Identifier: Apache-2.0
// The bodies of text.hpp.
#pragma once
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

}  // namespace skein::inline SKEIN_ABI::detail

SKEIN_END_COLD
