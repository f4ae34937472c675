// SPDX-License-Identifier: Apache-2.0
// The bodies of text_pool.hpp.
#pragma once
#include <algorithm>
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
  bytes_.append(text.data(), text.size());
  ends_.push_back(bytes_.size());
  return number = size() - 1;
}

SKEIN_INLINE std::int32_t TextPool::find(std::string_view text) const { return slots_.empty() ? -1 : slots_[slot(text)]; }

SKEIN_INLINE void TextPool::clear() {
  bytes_.clear();
  ends_.clear();
  free_slots(slots_.size());
}

SKEIN_INLINE void TextPool::free_slots(std::size_t count) {
  slots_.resize(count);
  std::fill_n(slots_.data(), count, -1);
}

SKEIN_INLINE void TextPool::grow() {
  const std::size_t count = slots_.empty() ? 16 : 2 * slots_.size();
  slots_.shrink(0);  // they are made anew
  free_slots(count);
  for (std::int32_t i = 0; i < size(); ++i) slots_[slot((*this)[i])] = i;
}

}  // namespace skein::inline SKEIN_ABI::data
