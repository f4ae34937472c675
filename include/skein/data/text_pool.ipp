// SPDX-License-Identifier: Apache-2.0
// The bodies of text_pool.hpp.
#pragma once
#include <functional>

#include "text_pool.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE std::size_t TextPool::slot(std::string_view text) const {
  std::size_t at = std::hash<std::string_view>{}(text) & (slots_.size() - 1);
  while (slots_[at] >= 0 && (*this)[slots_[at]] != text) at = (at + 1) & (slots_.size() - 1);
  return at;
}

SKEIN_INLINE std::int32_t TextPool::add(std::string_view text) {
  if (2 * ends_.size() >= slots_.size()) grow();
  std::int32_t& number = slots_[slot(text)];
  if (number >= 0) return number;
  bytes_.append(text);
  ends_.push_back(bytes_.size());
  return number = size() - 1;
}

SKEIN_INLINE std::int32_t TextPool::find(std::string_view text) const { return slots_.empty() ? -1 : slots_[slot(text)]; }

SKEIN_INLINE void TextPool::clear() {
  bytes_.clear();
  ends_.clear();
  slots_.assign(slots_.size(), -1);
}

SKEIN_INLINE void TextPool::grow() {
  slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), -1);
  for (std::int32_t i = 0; i < size(); ++i) slots_[slot((*this)[i])] = i;
}

}  // namespace skein::inline SKEIN_ABI::data
