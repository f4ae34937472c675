// SPDX-License-Identifier: Apache-2.0
// The bodies of shared_file.hpp.
#pragma once
#include "shared_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "../../core/clock.hpp"
#include "../../core/text.hpp"
#include "process_numbers.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

namespace detail {
/// A file without a name; its text says whose descriptor it is, and in which numbering of processes.
SKEIN_INLINE int make_without_name(SharedFileText& text, std::uint64_t bytes) {
#if defined(O_TMPFILE)
  const unsigned long long numbers = process_numbers();
  const int file = numbers ? ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    std::snprintf(text, sizeof text, "%llx:%d:%d", numbers, static_cast<int>(getpid()), file);
    return file;
  }
  ::close(file);
#endif
  return -1;
}

SKEIN_INLINE int make_with_name(SharedFileText& text, std::uint64_t bytes) {
  const unsigned long long numbers = process_numbers();
  (void)sweep_shared_files();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto now = static_cast<unsigned long long>(1e9 * seconds_now());
    std::snprintf(text, sizeof text, "/skein-%llx-%d-%llx-%d", numbers, static_cast<int>(getpid()), now, attempt);
    const int file = shm_open(text, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0) continue;
    if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
    shm_unlink(text);
    ::close(file);
    break;
  }
  return -1;
}
}  // namespace detail

SKEIN_INLINE int make_shared_file(SharedFileText& text, std::uint64_t bytes, OpenBy by) {
  const int file = by == OpenBy::name ? detail::make_with_name(text, bytes) : detail::make_without_name(text, bytes);
  if (file < 0) text[0] = 0;
  return file;
}

SKEIN_INLINE int open_shared_file(const char* text) {
  if (text[0] == '/') return shm_open(text, O_RDWR, 0600);
  unsigned long long numbers = 0;
  int pid = 0, descriptor = 0;
  if (std::sscanf(text, "%llx:%d:%d", &numbers, &pid, &descriptor) != 3 || numbers != process_numbers()) return -1;
  return ::open(skein::text("/proc/{}/fd/{}", pid, descriptor).c_str(), O_RDWR | O_CLOEXEC);
}

SKEIN_INLINE void forget_shared_file(const char* text) {
  if (text[0] == '/') shm_unlink(text);
}

SKEIN_INLINE int sweep_shared_files() {
  DIR* const folder = ::opendir("/dev/shm");
  const unsigned long long here = process_numbers();
  int swept = 0;
  while (const dirent* const entry = folder ? ::readdir(folder) : nullptr) {
    unsigned long long numbers = 0;
    int pid = 0;
    if (std::sscanf(entry->d_name, "skein-%llx-%d-", &numbers, &pid) != 2 || numbers == 0 || numbers != here) continue;
    if (pid < 1 || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    swept += shm_unlink((std::string("/") + entry->d_name).c_str()) == 0;
  }
  if (folder) ::closedir(folder);
  return swept;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
