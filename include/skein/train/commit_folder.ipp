// SPDX-License-Identifier: Apache-2.0
// The bodies of commit_folder.hpp.
#pragma once
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../core/text.hpp"
#include "atomic_file.hpp"
#include "commit_folder.hpp"
#include "manifest.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
[[noreturn]] inline void fail_folder(const std::string& path, const char* what) {
  throw FileError(path, -1, std::string(what) + ": " + std::strerror(errno));
}
/// The folder, and those above it.
inline void make_folders(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return sync_folder(parent_of(path));
  if (errno == EEXIST) return;
  if (errno != ENOENT || parent_of(path) == path) fail_folder(path, "the folder cannot be made");
  make_folders(parent_of(path));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail_folder(path, "the folder cannot be made");
  sync_folder(parent_of(path));
}
/// "." and ".." are not among them.
inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = ::opendir(path.c_str());
  if (!folder && errno == ENOENT) return names;
  if (!folder) fail_folder(path, "the folder cannot be read");
  while (const dirent* entry = ::readdir(folder))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) names.emplace_back(entry->d_name);
  ::closedir(folder);
  return names;
}
/// A commit has files alone: of a folder with others what is left stays. Links are removed, not followed.
inline void remove_commit(const std::string& path) {
  for (const std::string& name : names_in(path)) ::unlink((path + "/" + name).c_str());
  ::rmdir(path.c_str());
}
/// The step of "step_00000500"; -1 of another name.
inline std::int64_t step_of(std::string_view name) {
  std::int64_t step = -1;
  if (!name.starts_with("step_") || name.size() < 13) return -1;
  const auto [end, fault] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return fault == std::errc() && end == name.data() + name.size() && step >= 0 ? step : -1;
}
}  // namespace detail

SKEIN_INLINE CommitFolder::~CommitFolder() {
  if (lock_ >= 0) ::close(lock_);
}

SKEIN_INLINE std::string CommitFolder::commit(std::int64_t step) const {
  const std::string digits = std::to_string(step);
  return path_ + "/step_" + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

SKEIN_INLINE std::vector<std::int64_t> CommitFolder::steps() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : detail::names_in(path_))
    if (const std::int64_t step = detail::step_of(name); step >= 0) steps.push_back(step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

SKEIN_INLINE void CommitFolder::lock() {
  detail::make_folders(path_);
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) detail::fail_folder(path_, "the folder cannot be opened");
  for (int tries = 0; ::flock(lock_, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // a file system without locks
    if (tries == 250)
      detail::fail_folder(path_, "another process writes its checkpoints into this folder: give each job its own");
    const timespec nap{0, 20'000'000};
    ::nanosleep(&nap, nullptr);
  }
}

SKEIN_INLINE void CommitFolder::sweep() const {
  for (const std::string& name : detail::names_in(path_))
    if (name.ends_with(".partial") && detail::step_of(std::string_view(name).substr(0, name.size() - 8)) >= 0)
      detail::remove_commit(path_ + "/" + name);
}

SKEIN_INLINE void CommitFolder::prepare(std::int64_t step) const {
  sweep();
  if (::mkdir(partial(step).c_str(), 0777) != 0) detail::fail_folder(partial(step), "the folder cannot be made");
}

SKEIN_INLINE void CommitFolder::publish(std::int64_t step, CheckpointWriter& manifest, int keep) const {
  const std::string from = partial(step), to = commit(step);
  manifest.commit(from + "/" + manifest_name);  // brings the folder to the disk too, with the names of the shards
  if (::rename(from.c_str(), to.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) detail::fail_folder(from, "cannot be renamed to its final name");
    // There is one of this step, of a place within it or damaged: the two change places, so that at no time there is none.
    constexpr unsigned exchange = 2;
    if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), exchange) != 0) {
      const std::string before = commit(step + 1) + ".partial";  // a file system that cannot: earlier commits are there
      if (::rename(to.c_str(), before.c_str()) != 0 || ::rename(from.c_str(), to.c_str()) != 0)
        detail::fail_folder(from, "cannot be renamed to its final name");
    }
  }
  detail::sync_folder(path_);
  int kept = 0;
  for (const std::int64_t other : steps())  // a later one has been skipped, since it is damaged: it does not count
    if (other <= step && ++kept > keep) ::rename(commit(other).c_str(), partial(other).c_str());  // half of one is no commit
  sweep();
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
