// SPDX-License-Identifier: Apache-2.0
// The bodies of flags.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "flags.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace detail {
/// The rank that a launcher's environment calls this process; "" where there is none.
SKEIN_INLINE std::string_view launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"})
    if (const char* rank = std::getenv(name)) return rank;
  return {};
}
/// What all ranks have to say, rank 0 says alone.
SKEIN_INLINE bool another_rank_speaks() { return !launched_rank().empty() && launched_rank() != "0"; }

SKEIN_INLINE std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

/// The parts of a text between commas; of an empty text none.
SKEIN_INLINE std::vector<std::string> between_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

/// A flag's bound as its variable has it: the float 0.1 is larger than the double.
template <class T> double bound_as(double bound) {
  if constexpr (!std::same_as<T, float>) return bound;
  else return std::abs(bound) <= std::numeric_limits<float>::max() ? static_cast<double>(static_cast<float>(bound)) : bound;
}

/// The whole text as a number that the variable and the flag's range have.
template <class T> bool set_number(std::string_view text, T& value, const FlagEntry& e) {
  std::conditional_t<std::signed_integral<T>, std::int64_t, T> read{};
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);  // from_chars knows no plus
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(static_cast<double>(read))) return false;
  if (static_cast<double>(read) < bound_as<T>(e.low) || static_cast<double>(read) > bound_as<T>(e.high)) return false;
  value = static_cast<T>(read);
  if constexpr (std::signed_integral<T>) return value == read;
  return true;
}
SKEIN_INLINE bool set_truth(std::string_view text, bool& value) {
  value = text == "true" || text == "1" || text == "yes" || text == "on";
  return value || text == "false" || text == "0" || text == "no" || text == "off";
}
SKEIN_INLINE bool set_words(std::string_view text, std::string& value, const FlagEntry& e) {
  if (!e.choices.empty() && std::find(e.choices.begin(), e.choices.end(), text) == e.choices.end()) return false;
  value = text;
  return true;
}
template <class T, class Set> bool set_each(std::string_view text, std::vector<T>& values, Set&& set) {
  values.clear();
  for (const std::string& part : between_commas(text))
    if (!set(part, values.emplace_back())) return false;
  return !values.empty() || std::same_as<T, std::string>;  // an empty text is no number
}

SKEIN_INLINE bool set_flag(const FlagEntry& e, std::string_view text) {
  const auto number = [&](std::string_view part, auto& value) { return set_number(part, value, e); };
  const auto words = [&](std::string_view part, std::string& value) { return set_words(part, value, e); };
  switch (e.kind) {
    case FlagKind::truth:
      return set_truth(text, *static_cast<bool*>(e.value));
    case FlagKind::int32:
      return number(text, *static_cast<int*>(e.value));
    case FlagKind::int64:
      return number(text, *static_cast<long*>(e.value));
    case FlagKind::count:
      return number(text, *static_cast<unsigned long*>(e.value));
    case FlagKind::real32:
      return number(text, *static_cast<float*>(e.value));
    case FlagKind::real64:
      return number(text, *static_cast<double*>(e.value));
    case FlagKind::words:
      return words(text, *static_cast<std::string*>(e.value));
    case FlagKind::int32s:
      return set_each(text, *static_cast<std::vector<int>*>(e.value), number);
    case FlagKind::real64s:
      return set_each(text, *static_cast<std::vector<double>*>(e.value), number);
    case FlagKind::many_words:
      return set_each(text, *static_cast<std::vector<std::string>*>(e.value), words);
    case FlagKind::none:
      break;
  }
  return false;
}

SKEIN_INLINE std::string text_of_flag(const FlagEntry& e) {
  switch (e.kind) {
    case FlagKind::truth:
      return *static_cast<bool*>(e.value) ? "true" : "false";
    case FlagKind::int32:
      return skein::text("{}", *static_cast<int*>(e.value));
    case FlagKind::int64:
      return skein::text("{}", *static_cast<long*>(e.value));
    case FlagKind::count:
      return skein::text("{}", *static_cast<unsigned long*>(e.value));
    case FlagKind::real32:
      return skein::text("{}", *static_cast<float*>(e.value));
    case FlagKind::real64:
      return skein::text("{}", *static_cast<double*>(e.value));
    case FlagKind::words:
      return *static_cast<std::string*>(e.value);
    case FlagKind::int32s:
      return joined(*static_cast<std::vector<int>*>(e.value), ",");
    case FlagKind::real64s:
      return joined(*static_cast<std::vector<double>*>(e.value), ",");
    case FlagKind::many_words:
      return joined(*static_cast<std::vector<std::string>*>(e.value), ",");
    case FlagKind::none:
      break;
  }
  return {};
}

SKEIN_INLINE std::string bound_text(double bound) {  // 1000000, not 1e+06
  return std::abs(bound) < 1e15 && bound == std::floor(bound) ? skein::text("{}", static_cast<long>(bound))
                                                              : skein::text("{}", bound);
}
/// What a flag takes: "a whole number of at least 1".
SKEIN_INLINE std::string wanted_of_flag(const FlagEntry& e) {
  if (!e.choices.empty()) return "one of " + joined(e.choices);
  std::string wanted;
  switch (e.kind) {
    case FlagKind::truth:
      return "true or false";
    case FlagKind::real32:
    case FlagKind::real64:
      wanted = "a number";
      break;
    case FlagKind::int32s:
      wanted = "a list with commas of whole numbers";
      break;
    case FlagKind::real64s:
      wanted = "a list with commas of numbers";
      break;
    case FlagKind::words:
      return "words";
    case FlagKind::many_words:
      return "a list with commas of words";
    default:
      wanted = "a whole number";
  }
  if (std::isfinite(e.low) && std::isfinite(e.high)) return wanted + " from " + bound_text(e.low) + " to " + bound_text(e.high);
  if (std::isfinite(e.high)) return wanted + " of at most " + bound_text(e.high);
  return std::isfinite(e.low) ? wanted + " of at least " + bound_text(e.low) : wanted;
}

/// The number of letters to add, leave out or exchange (Levenshtein, 1966).
SKEIN_INLINE std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t here = std::min({row[j + 1] + 1, row[j] + 1, corner + (a[i] != b[j])});
      corner = std::exchange(row[j + 1], here);
    }
  }
  return row[b.size()];
}
}  // namespace detail

SKEIN_INLINE Flags::Flag& Flags::Flag::within(double low, double high) {
  flags_->entries_[at_].low = low;
  flags_->entries_[at_].high = high;
  return *this;
}

SKEIN_INLINE Flags::Flag& Flags::Flag::one_of(std::vector<std::string> words) {
  flags_->entries_[at_].choices = std::move(words);
  return *this;
}

SKEIN_INLINE Flags::Flag Flags::add(detail::FlagEntry entry) {
  entry.name = detail::with_dashes(entry.name);
  if (entry.name == "help" || find(entry.name)) throw ArgumentError("Flags: there is a flag --" + entry.name + " already");
  const detail::FlagEntry* const off = to_switch_off("--" + entry.name);
  const bool is_truth = entry.kind == detail::FlagKind::truth;
  if (const auto* const other = off ? off : is_truth ? find("no-" + entry.name) : nullptr)
    throw ArgumentError("Flags: --" + (off ? entry.name : other->name) + " switches the flag --" +
                        (off ? other->name : entry.name) + " off: give one of the two another name");
  entry.initial = detail::text_of_flag(entry);
  entries_.push_back(std::move(entry));
  return Flag(*this, entries_.size() - 1);
}

SKEIN_INLINE detail::FlagEntry* Flags::find(std::string_view name) {
  for (detail::FlagEntry& e : entries_)
    if (e.name == name) return &e;
  return nullptr;
}

SKEIN_INLINE bool Flags::is_flag(std::string_view given) {
  const std::string name = given.starts_with("--") ? detail::with_dashes(given.substr(2, given.find('=') - 2)) : "";
  return name == "help" || find(name) || to_switch_off(given);
}

SKEIN_INLINE void Flags::refuse(const std::string& what, std::string_view program) const {
  throw FlagError(what + "\n" + help(program));
}

SKEIN_INLINE detail::FlagEntry* Flags::to_switch_off(std::string_view given) {
  detail::FlagEntry* e = given.starts_with("--no-") ? find(detail::with_dashes(given.substr(5))) : nullptr;
  return e && e->kind == detail::FlagKind::truth ? e : nullptr;
}

/// A word behind the flag `before`, which has its value already: what is meant by it, where that can be told.
SKEIN_INLINE std::string Flags::meant_by_word(std::string_view word, const detail::FlagEntry* before) {
  bool value = false;
  if (!before || word.starts_with('-')) return {};
  if (before->kind == detail::FlagKind::truth && detail::set_truth(word, value))
    return text(": --{} takes its value as --{}={}, or {}", before->name, before->name, word,
                value ? "stands alone" : "--no-" + before->name);
  return before->kind == detail::FlagKind::words && before->choices.empty() ? ": words with spaces stand in quotes" : "";
}

SKEIN_INLINE detail::FlagEntry& Flags::named(std::string_view given, std::string_view program, const detail::FlagEntry* before) {
  const std::string name = detail::with_dashes(given.substr(std::min(given.find_first_not_of('-'), given.size())));
  detail::FlagEntry* const same = find(name);
  if (same && given.starts_with("--") && given.size() == name.size() + 2) return *same;
  const detail::FlagEntry* near = same;
  std::size_t least = name.size() / 2 + 1;  // a name of other letters is not meant
  for (const detail::FlagEntry& e : entries_)
    if (const std::size_t apart = e.name.starts_with(name) ? 0 : detail::letters_apart(name, e.name); apart < least && apart <= 2)
      near = &e, least = apart;
  const std::string meant = near && !name.empty() ? ": is --" + near->name + " meant?" : "";
  refuse("there is no flag " + std::string(given) + (meant.empty() ? meant_by_word(given, before) : meant), program);
}

SKEIN_INLINE bool Flags::read(int argc, const char* const* argv) {
  std::string_view program = argc > 0 ? argv[0] : "";
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  const detail::FlagEntry* before = nullptr;      // of the word before, where a value may seem to go on
  for (int i = 1; i < argc; ++i) {
    const std::string_view given = argv[i];
    if (given == "--help" || given == "-h") {
      if (!detail::another_rank_speaks()) std::fputs(help(program).c_str(), stdout);
      return false;
    }
    if (const detail::FlagEntry* off = to_switch_off(given)) {
      *static_cast<bool*>(off->value) = false;
      before = nullptr;
      continue;
    }
    const std::size_t sign = std::min(given.find('='), given.size());
    const bool alone = sign == given.size();
    detail::FlagEntry& e = named(given.substr(0, sign), program, before);
    const bool truth = alone && e.kind == detail::FlagKind::truth;
    if (alone && !truth && (i + 1 == argc || is_flag(argv[i + 1])))
      refuse("--" + e.name + " has no value: " + detail::wanted_of_flag(e) + " is wanted", program);
    const std::string_view value = truth ? "true" : alone ? argv[++i] : given.substr(sign + 1);
    if (!detail::set_flag(e, value))
      refuse("--" + e.name + " is \"" + std::string(value) + "\": " + detail::wanted_of_flag(e) + " is wanted", program);
    before = truth || e.kind == detail::FlagKind::words ? &e : nullptr;
  }
  return true;
}

SKEIN_INLINE std::string Flags::help(std::string_view program) const {
  std::size_t width = 6;  // "--help"
  const auto shown = [](const detail::FlagEntry& e) { return (e.kind == detail::FlagKind::truth ? "--[no-]" : "--") + e.name; };
  for (const detail::FlagEntry& e : entries_) width = std::max(width, shown(e).size());
  std::string lines = about_.empty() ? "" : about_ + "\n";
  lines += "usage: " + std::string(program) + " [--flag value]...\n";
  const auto line = [&](const std::string& name, const std::string& help) {
    lines += "  " + name + std::string(width + 2 - name.size(), ' ') + help + "\n";
  };
  for (const detail::FlagEntry& e : entries_)
    line(shown(e),
         (e.help.empty() ? "" : e.help + "; ") + detail::wanted_of_flag(e) + (e.initial.empty() ? "" : " (" + e.initial + ")"));
  line("--help", "this list");
  return lines;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
