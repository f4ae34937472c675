// SPDX-License-Identifier: Apache-2.0
// The bodies of node_pages.hpp.
#pragma once
#include "node_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "../../device/kept_memory.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE NodePages::NodePages(int rank, int ranks, std::size_t bytes) : rank_(rank), ranks_(ranks) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t most = static_cast<std::size_t>(std::numeric_limits<off_t>::max()) / static_cast<std::size_t>(ranks) / 2;
  stride_ = bytes < most ? (bytes + page - 1) / page * page : 0;  // 0: no machine has so much
}

SKEIN_INLINE NodePages::~NodePages() {
  if (base_ && KeptMemory::remove(own())) munmap(base_, stride_ * static_cast<std::size_t>(ranks_));
  if (file_ >= 0) ::close(file_);
}

SKEIN_INLINE bool NodePages::make(SharedFileText& text, OpenBy by) {
  text[0] = 0;
  if (stride_ > 0) file_ = make_shared_file(text, stride_ * static_cast<std::uint64_t>(ranks_), by);
  return file_ >= 0;
}

SKEIN_INLINE bool NodePages::map(const char* text) {
  if (!text[0] || stride_ == 0) return false;
  if (file_ < 0) file_ = open_shared_file(text);
  if (file_ < 0) return false;
  const std::size_t all = stride_ * static_cast<std::size_t>(ranks_);
  if (posix_fallocate(file_, static_cast<off_t>(stride_ * static_cast<std::size_t>(rank_)), static_cast<off_t>(stride_)) != 0)
    return false;
  void* const p = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (p == MAP_FAILED) return false;
  base_ = static_cast<char*>(p);
  KeptMemory::add(own(), stride_);
  return true;
}

SKEIN_INLINE void NodePages::touch() const {
  const char* const end = base_ + stride_ * static_cast<std::size_t>(ranks_);
  for (const volatile char* p = base_; p < end; p += 4096) (void)*p;
}

SKEIN_INLINE void NodePages::withdraw() noexcept {
  if (!base_ || withdrawn_) return;
  withdrawn_ = true;
  void* const p = mmap(nullptr, stride_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return;
  std::memcpy(p, own(), stride_);
  if (mremap(p, stride_, stride_, MREMAP_MAYMOVE | MREMAP_FIXED, own()) == MAP_FAILED) munmap(p, stride_);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
