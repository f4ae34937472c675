// SPDX-License-Identifier: Apache-2.0
// The bodies of node_pages.hpp.
#pragma once
#include "node_pages.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "../../core/clock.hpp"
#include "../../device/kept_memory.hpp"
#include "process_numbers.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE int sweep_shared_files() {
  DIR* const folder = ::opendir("/dev/shm");
  int swept = 0;
  while (const dirent* const entry = folder ? ::readdir(folder) : nullptr) {
    unsigned long long numbers = 0;
    int pid = 0;
    if (std::sscanf(entry->d_name, "skein-%llx-%d-", &numbers, &pid) != 2 || numbers == 0 || numbers != process_numbers())
      continue;
    if (pid < 1 || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    swept += shm_unlink((std::string("/") + entry->d_name).c_str()) == 0;
  }
  if (folder) ::closedir(folder);
  return swept;
}

SKEIN_INLINE int make_shared_file(char (&name)[64], std::uint64_t bytes) {
  static const unsigned long long numbers = process_numbers();
  (void)sweep_shared_files();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto now = static_cast<unsigned long long>(1e9 * seconds_now());
    std::snprintf(name, sizeof name, "/skein-%llx-%d-%llx-%d", numbers, static_cast<int>(getpid()), now, attempt);
    const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0) continue;
    if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
    shm_unlink(name);
    ::close(file);
    break;
  }
  name[0] = 0;
  return -1;
}

SKEIN_INLINE NodePages::NodePages(int rank, int ranks, std::size_t bytes) : rank_(rank), ranks_(ranks) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t most = static_cast<std::size_t>(std::numeric_limits<off_t>::max()) / static_cast<std::size_t>(ranks) / 2;
  stride_ = bytes < most ? (bytes + page - 1) / page * page : 0;  // 0: no machine has so much
}

SKEIN_INLINE NodePages::~NodePages() {
  if (base_ && KeptMemory::remove(own())) munmap(base_, stride_ * static_cast<std::size_t>(ranks_));
  if (file_ >= 0) ::close(file_);
}

SKEIN_INLINE bool NodePages::make(char (&name)[64]) {
  name[0] = 0;
  if (stride_ > 0) file_ = make_shared_file(name, stride_ * static_cast<std::uint64_t>(ranks_));
  return file_ >= 0;
}

SKEIN_INLINE bool NodePages::map(const char* name) {
  if (!name[0] || stride_ == 0) return false;
  if (file_ < 0) file_ = shm_open(name, O_RDWR, 0600);
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
