// SPDX-License-Identifier: Apache-2.0
// Texts by number: each different text is kept once, in one array of bytes. What a text column of a table is made of.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../core/config.hpp"

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
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  std::int32_t size() const { return static_cast<std::int32_t>(ends_.size()); }
  void clear();
  /// What they take in memory.
  std::uint64_t bytes() const { return bytes_.size() + ends_.size() * sizeof(ends_[0]) + slots_.size() * sizeof(slots_[0]); }

 private:
  /// Where the text stands in the hash table, or where it would.
  std::size_t slot(std::string_view text) const;
  void grow();

  std::string bytes_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::int32_t> slots_;  // numbers of texts, -1: free; a power of two of them, at most half full
};

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "text_pool.ipp"
#endif
