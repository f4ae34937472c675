// SPDX-License-Identifier: Apache-2.0
// The bodies of named_values.hpp.
#pragma once
#include "hash.hpp"
#include "named_values.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE NamedValues& NamedValues::of(std::string_view owner) {
  owner_ = owner;
  return *this;
}

SKEIN_INLINE NamedValues& NamedValues::within(std::string_view whole) {
  whole_ = whole;
  return *this;
}

SKEIN_INLINE NamedValues& NamedValues::add(std::string_view name, detail::TextValue value) {
  const bool option = name.starts_with('.');
  if (option) lines_ += '`';
  lines_ += name;
  if (option) lines_ += '`';
  if (!owner_.empty()) lines_.append(" of ").append(owner_);
  if (!whole_.empty()) lines_.append(" (").append(whole_).append(")");
  lines_ += '\t';
  value.append_to(lines_);
  lines_ += '\n';
  return *this;
}

SKEIN_INLINE NamedValues& NamedValues::add_hash(std::string_view name, const void* data, std::size_t bytes) {
  return add(name, text("of hash {}", hash_bytes(data, bytes) % 1000000));
}

SKEIN_INLINE std::uint64_t NamedValues::hash() const { return hash_bytes(lines_.data(), lines_.size()); }

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
