// SPDX-License-Identifier: Apache-2.0
// Pages that all ranks of a node map, a part each: what SharedPages of an MpiComm or a GlooComm are. A file in shared memory;
// each rank claims the memory of its own part, so that it lies near that rank's cores.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../../core/config.hpp"
#include "shared_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// One rank's mapping of the parts of all. Made by all ranks together: make() on one, then map() on each.
class NodePages {
 public:
  /// `bytes`: of each part; they are rounded up to whole pages.
  NodePages(int rank, int ranks, std::size_t bytes);
  NodePages(const NodePages&) = delete;
  NodePages& operator=(const NodePages&) = delete;
  /// The part of this rank stays where a call that cannot be cancelled works in it (KeptMemory).
  ~NodePages();

  /// The file of all parts, and the text by which the others open it, which the caller ends (forget_shared_file). False, and no
  /// text, where the machine gives none.
  bool make(SharedFileText& text, OpenBy by);
  /// Maps all parts of that file, and claims this rank's; false where the machine has no room.
  bool map(const char* text);
  /// When all have mapped theirs: no page fault is left for the first call.
  void touch() const;

  char* part(int r) const { return base_ + static_cast<std::size_t>(r) * stride_; }
  char* own() const { return part(rank_); }
  /// Bytes of each part.
  std::size_t stride() const { return stride_; }
  /// All of these bytes lie in this rank's part.
  bool holds(const void* p, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(p), begin = reinterpret_cast<std::uintptr_t>(own());
    return at >= begin && bytes <= stride_ && at - begin <= stride_ - bytes;
  }
  /// A call was broken off: this rank's part becomes memory of its own, at the same address and with the same values, so that a
  /// rank which comes late to the call does not write into what is long used otherwise.
  void withdraw() noexcept;

 private:
  int rank_, ranks_;
  std::size_t stride_;
  char* base_ = nullptr;
  int file_ = -1;
  bool withdrawn_ = false;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "node_pages.ipp"
#endif
