// SPDX-License-Identifier: Apache-2.0
// NamedValues: options, hyper-parameters and sizes by name, as texts. Ranks compare the hash of such a list, and where it differs
// a sentence names the first value that does.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "text.hpp"

namespace skein::inline SKEIN_ABI {

/// A list of names with values, in the order in which they were added:
/// `values.of("Adam").add(".lr", lr).add(".beta1", beta1)` makes "`.lr` of Adam" and "`.beta1` of Adam".
class NamedValues {
 public:
  /// The names that follow belong to `owner`; an empty one: to nothing.
  NamedValues& of(std::string_view owner);
  /// Behind the names that follow stands `whole`, where there may be two of a name: "`.delta` of Huber (loss 2)"; an empty one:
  /// nothing.
  NamedValues& within(std::string_view whole);
  /// A number, a truth value, words, or a setting that is an enumeration: by the word that name_of(value) beside it gives, which
  /// files keep. Neither may have a line break or a tab.
  NamedValues& add(std::string_view name, detail::TextValue value);
  /// Many numbers, which a message names by their count and their hash.
  NamedValues& add_hash(std::string_view name, const void* data, std::size_t bytes);

  /// Lines of "name, tab, value".
  const std::string& lines() const { return lines_; }
  /// The hash of all lines.
  std::uint64_t hash() const;

 private:
  std::string owner_, whole_, lines_;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "named_values.ipp"
#endif
