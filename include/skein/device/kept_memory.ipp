// SPDX-License-Identifier: Apache-2.0
// The bodies of kept_memory.hpp.
#pragma once
#include "kept_memory.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE void KeptMemory::add(const void* p, std::size_t bytes) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.blocks[static_cast<const char*>(p)] = {bytes, false};
}

SKEIN_INLINE bool KeptMemory::remove(const void* p) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto block = t.blocks.find(static_cast<const char*>(p));
  if (block == t.blocks.end()) return true;
  const bool kept = block->second.kept;
  if (!kept) t.blocks.erase(block);
  return !kept;
}

SKEIN_INLINE bool KeptMemory::holds(const void* p, std::size_t bytes) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const char* const begin = static_cast<const char*>(p);
  const auto block = find(t, begin);
  return block != t.blocks.end() && begin + bytes <= block->first + block->second.bytes;
}

SKEIN_INLINE void KeptMemory::keep(const void* p) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const char* const at = static_cast<const char*>(p);
  if (const auto block = find(t, at); block != t.blocks.end() && at < block->first + block->second.bytes)
    block->second.kept = true;
}

SKEIN_INLINE KeptMemory::Table& KeptMemory::table() {
  static Table* const t = new Table;
  return *t;
}

SKEIN_INLINE KeptMemory::Blocks::iterator KeptMemory::find(Table& t, const char* p) {
  auto after = t.blocks.upper_bound(p);
  return after == t.blocks.begin() ? t.blocks.end() : --after;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
