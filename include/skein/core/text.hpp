// SPDX-License-Identifier: Apache-2.0
// Messages are made by one small function: text("{} of {}", a, b). No stream, and not fmt, which nvcc does not compile in C++20.
// A call instantiates no more than the check of its pattern: the values travel as a few plain kinds, and one function puts them
// in.
#pragma once
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "config.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace detail {
/// An enumeration whose values have words: `constexpr std::string_view name_of(Mode)` stands beside it.
template <class Enum> concept HasNames = std::is_enum_v<Enum> && requires(Enum value) {
  { name_of(value) } -> std::same_as<std::string_view>;
};

/// A value that stands in a text: a whole number, a real one, a truth value, a value of an enumeration, or words. Words are
/// referred to, not copied.
class TextValue {
 public:
  TextValue(bool value) : words_(value ? "true" : "false"), kind_(Kind::words) {}
  TextValue(char value) : number_(value), kind_(Kind::character) {}
  template <std::signed_integral T> TextValue(T value) : number_(static_cast<long long>(value)), kind_(Kind::number) {}
  template <std::unsigned_integral T> TextValue(T value) : count_(static_cast<unsigned long long>(value)), kind_(Kind::count) {}
  template <std::floating_point T> TextValue(T value)
      : real_(static_cast<double>(value)), kind_(Kind::real), narrow_(sizeof(T) < 8) {}
  template <HasNames Enum> TextValue(Enum value) : words_(name_of(value)), kind_(Kind::words) {}
  template <class T>
  requires(std::convertible_to<const T&, std::string_view>) TextValue(const T& words) : words_(words), kind_(Kind::words) {}

  void append_to(std::string& to) const;

 private:
  enum class Kind : unsigned char { words, character, number, count, real };
  std::string_view words_{};
  long long number_ = 0;
  unsigned long long count_ = 0;
  double real_ = 0;
  Kind kind_;
  bool narrow_ = false;  ///< it was a float: as few digits as tell it from other floats
};

/// Not constexpr: a call of it in a constant expression is an error that has its name.
inline void text_has_other_places_than_values() {}

/// A pattern with as many places "{}" as there are values: another does not compile.
template <std::size_t Values> struct TextPattern {
  std::string_view pattern;
  consteval TextPattern(const char* text) : pattern(text) {
    std::size_t places = 0;
    for (; *text != 0; ++text)
      if (text[0] == '{' && text[1] == '}') ++places;
    if (places != Values) text_has_other_places_than_values();
  }
};

std::string fill_text(std::string_view pattern, const TextValue* value);
/// Bytes of the character that the words begin with; 0 where they begin with none of UTF-8 (RFC 3629).
std::size_t utf8_length(std::string_view words);
}  // namespace detail

/// The pattern with a value in the place of each "{}": whole numbers, real numbers (as few digits as tell them from others), true
/// and false, values of enumerations that have name_of(), characters and words. Another number of values than places does not
/// compile. (The identity: nvcc counts the values before it has them otherwise.)
template <class... Values>
requires(sizeof...(Values) > 0) std::string
    text(std::type_identity_t<detail::TextPattern<sizeof...(Values)>> pattern, const Values&... values) {
  const detail::TextValue all[] = {values...};
  return detail::fill_text(pattern.pattern, all);
}

/// A list, made one value at a time: `TextList names; names.add("loss").add("accuracy");` is "loss, accuracy".
class TextList {
 public:
  explicit TextList(std::string_view separator = ", ") : separator_(separator) {}
  TextList& add(const detail::TextValue& value);
  bool empty() const { return empty_; }
  const std::string& text() const { return text_; }
  std::string or_words(std::string_view none) const { return empty_ ? std::string(none) : text_; }

 private:
  std::string text_;
  std::string_view separator_;
  bool empty_ = true;
};
/// The values of a range as a list: joined(extents, " x ") is "32 x 10".
template <class Range> std::string joined(const Range& values, std::string_view separator = ", ") {
  TextList list(separator);
  for (const auto& value : values) list.add(value);
  return list.text();
}

/// Line ends and tabs in printable(): as other control characters, or as they are.
enum class Lines { escape, keep };
/// Words from outside (a file, a name, a socket, the environment) as a message may show them: what a terminal would take as a
/// command (control characters, and those that turn the direction of writing) and bytes that are no UTF-8 become \xNN.
std::string printable(std::string_view words, Lines lines = Lines::escape);
/// The words of printable() between quotes, cut at so many bytes: 'dense1', or 'a very long na...'.
std::string in_quotes(std::string_view words, char mark = '\'', std::size_t most = 120);

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "text.ipp"
#endif
