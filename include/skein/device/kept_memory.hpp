// SPDX-License-Identifier: Apache-2.0
// Which host memory arenas have, and what of it must never be released: a communicator whose started call cannot be cancelled
// leaves the memory to it. So those of MPI work in arenas directly, and in buffers of their own elsewhere.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI {

/// The table of this process's arenas; called from any thread. Memory that is not an arena's is not known here.
class KeptMemory {
 public:
  static void add(const void* p, std::size_t bytes);
  /// False where the block has to stay.
  static bool remove(const void* p);
  /// All of it lies in one block.
  static bool holds(const void* p, std::size_t bytes);
  /// The block around p is never released.
  static void keep(const void* p);

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
  static Table& table();
  static Blocks::iterator find(Table& t, const char* p);
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "kept_memory.ipp"
#endif
