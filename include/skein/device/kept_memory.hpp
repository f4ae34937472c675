// SPDX-License-Identifier: Apache-2.0
// Which host memory arenas have, and what of it must never be released: a communicator whose started call cannot be cancelled
// leaves the memory to it. So such calls work in arenas directly, and in buffers of their own elsewhere.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI {

/// Of the whole process; called from any thread. What is not an arena's is not known here.
class KeptMemory {
 public:
  static void add(const void* p, std::size_t bytes) {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    t.blocks[static_cast<const char*>(p)] = {bytes, false};
  }
  /// False where the block has to stay.
  static bool remove(const void* p) {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    const auto block = t.blocks.find(static_cast<const char*>(p));
    if (block == t.blocks.end()) return true;
    const bool kept = block->second.kept;
    if (!kept) t.blocks.erase(block);
    return !kept;
  }
  /// All of it lies in one block.
  static bool holds(const void* p, std::size_t bytes) {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    const char* const begin = static_cast<const char*>(p);
    const auto block = find(t, begin);
    return block != t.blocks.end() && begin + bytes <= block->first + block->second.bytes;
  }
  /// The block around p is never released.
  static void keep(const void* p) {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    if (const auto block = find(t, static_cast<const char*>(p)); block != t.blocks.end()) block->second.kept = true;
  }

 private:
  struct Block {
    std::size_t bytes = 0;
    bool kept = false;
  };
  using Blocks = std::map<const char*, Block>;
  struct Table {
    std::mutex mutex;
    Blocks blocks;
  };
  // Never destroyed: arenas of static duration end after it would.
  static Table& table() {
    static Table* const t = new Table;
    return *t;
  }
  static Blocks::iterator find(Table& t, const char* p) {
    auto after = t.blocks.upper_bound(p);
    return after == t.blocks.begin() ? t.blocks.end() : --after;
  }
};

}  // namespace skein::inline SKEIN_ABI
