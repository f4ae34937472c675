// SPDX-License-Identifier: Apache-2.0
// Texts by number: each different text is kept once, in one array of bytes. What a text column of a table is made of.
#pragma once
#include <cstdint>
#include <string_view>

#include "growing_array.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Different texts, numbered from 0 in the order in which they came.
class TextPool {
 public:
  /// The number of this text, which is added where it is new.
  std::int32_t add(std::string_view text);
  /// The number of this text, or -1.
  std::int32_t find(std::string_view text) const;
  std::string_view operator[](std::int32_t number) const {
    const std::size_t i = static_cast<std::size_t>(number), begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, static_cast<std::size_t>(ends_[i]) - begin};
  }
  std::int32_t size() const { return static_cast<std::int32_t>(ends_.size()); }
  void clear();
  /// What they take in memory at most: the hash table has up to four slots for a text.
  std::uint64_t bytes() const { return bytes_.size() + ends_.size() * (sizeof(ends_[0]) + 4 * sizeof(slots_[0])); }

 private:
  /// Where the text stands in the hash table, or where it would.
  std::size_t slot(std::string_view text) const;
  /// So many slots, all free.
  void free_slots(std::size_t count);
  void grow();

  GrowingArray<char> bytes_;
  GrowingArray<std::uint64_t> ends_;
  GrowingArray<std::int32_t> slots_;  // numbers of texts, -1: free; a power of two of them, at most half full
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "text_pool.ipp"
#endif
