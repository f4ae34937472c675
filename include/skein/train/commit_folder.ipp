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
#include <time.h>
#include <unistd.h>
#include <utility>

#include "../core/atomic_file.hpp"
#include "../core/text.hpp"
#include "commit_folder.hpp"
#include "manifest.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
using skein::detail::parent_of;
using skein::detail::sync_folder;
[[noreturn]] inline void fail_folder(const std::string& path, const char* what) { throw FileError(path, -1, what, errno); }
/// The folder, and those above it; its name is on the disk, also where a process that was killed made it.
inline void make_folders(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
      if (errno != ENOENT && errno != ELOOP) fail_folder(path, "the folder cannot be read");
      throw FileError(path, -1,  // the disk that it names may be away: nothing is made there
                      "is a link that leads nowhere: make the folder that it names, or give .checkpoint another .folder");
    }
    if (!S_ISDIR(found.st_mode))
      throw FileError(path, -1, "is a file: the .folder of .checkpoint is one that fit makes, or has made");
    return sync_folder(parent_of(path));
  }
  if (errno != ENOENT || parent_of(path) == path) fail_folder(path, "the folder cannot be made");
  make_folders(parent_of(path));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail_folder(path, "the folder cannot be made");
  sync_folder(parent_of(path));
}
/// The name without this end; empty where it has another.
inline std::string_view without_end(std::string_view name, std::string_view end) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : std::string_view();
}
/// "." and ".." are not among them.
inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = ::opendir(path.c_str());
  if (!folder && errno == ENOENT) return names;
  if (!folder) fail_folder(path, "the folder cannot be read");
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) names.emplace_back(entry->d_name);
    errno = 0;
  }
  const int error = errno;  // 0 at the end
  ::closedir(folder);
  errno = error;
  if (error != 0) fail_folder(path, "the folder cannot be read");
  return names;
}
/// A commit has files alone: of a folder with others what is left stays. Links are removed, not followed, and so is what has the
/// name of a commit and is no folder.
inline void remove_commit(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return;
  if (!S_ISDIR(found.st_mode)) return static_cast<void>(::unlink(path.c_str()));
  for (const std::string& name : names_in(path)) ::unlink((path + "/" + name).c_str());
  ::rmdir(path.c_str());
}
/// A short sleep, and its seconds.
inline double nap() {
  constexpr timespec length{0, 20'000'000};
  ::nanosleep(&length, nullptr);
  return 0.02;
}
/// The file that keeps other jobs out: network file systems lock no folders.
inline std::string lock_file(const std::string& folder) { return folder + "/.lock"; }
inline int open_lock(const std::string& name) {
  const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) fail_folder(name, "the file that keeps other jobs out cannot be made");
  return file;
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
  std::sort(steps.begin(), steps.end());
  std::reverse(steps.begin(), steps.end());
  return steps;
}

SKEIN_INLINE void CommitFolder::lock(double seconds) {
  detail::make_folders(path_);
  const std::string name = detail::lock_file(path_);
  lock_ = detail::open_lock(name);
  bool said = false;
  for (double waited = 0; ::flock(lock_, LOCK_EX | LOCK_NB) != 0;) {
    if (errno == EINTR) continue;
    if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL) {
      std::fprintf(stderr, "fit: '%s' is on a file system without locks (%s): see that no other job saves into this folder\n",
                   path_.c_str(), std::strerror(errno));
      break;
    }
    if (errno != EWOULDBLOCK) detail::fail_folder(name, "cannot be locked");
    if (waited >= seconds)
      throw FileError(path_, -1, "another process writes its checkpoints into this folder: give each job its own");
    if (!said && waited >= std::min(5.0, seconds / 2)) {
      said = true;
      std::fprintf(stderr, "fit: waits up to %.0f s for another process that writes its checkpoints into '%s'\n", seconds,
                   path_.c_str());
    }
    waited += detail::nap();
  }
  recover();
  sweep();
}

/// Where the file that was locked has another name now, or none.
SKEIN_INLINE void CommitFolder::make_again() const {
  const std::string name = detail::lock_file(path_);
  struct stat held {
  }, named{};
  if (lock_ < 0 || ::fstat(lock_, &held) != 0) return;
  if (::lstat(name.c_str(), &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino) return;
  detail::make_folders(path_);
  const int file = detail::open_lock(name);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file);
    throw FileError(path_, -1,
                    "was removed or renamed while this training ran, and another process writes its checkpoints into the one "
                    "that has its name now: give each job its own");
  }
  ::close(std::exchange(lock_, file));
  std::fprintf(stderr, "fit: '%s' was removed or renamed while the training ran: it is made again\n", path_.c_str());
}

/// Repairs what a process left that was killed while it put one commit in the place of another.
SKEIN_INLINE void CommitFolder::recover() const {
  for (const std::string& name : detail::names_in(path_)) {
    const std::int64_t step = detail::step_of(detail::without_end(name, ".before"));
    if (step < 0) continue;
    if (::access(commit(step).c_str(), F_OK) == 0) detail::remove_commit(path_ + "/" + name);
    else if (::rename(before(step).c_str(), commit(step).c_str()) != 0)
      detail::fail_folder(before(step), "cannot get its name back");
  }
}

SKEIN_INLINE void CommitFolder::sweep() const {
  for (const std::string& name : detail::names_in(path_))
    if (detail::step_of(detail::without_end(name, ".partial")) >= 0) detail::remove_commit(path_ + "/" + name);
}

SKEIN_INLINE WrittenFile CommitFolder::write_shard(std::int64_t step, int rank, CheckpointWriter& shard) const {
  const std::string folder = partial(step);
  make_again();
  constexpr double most_seconds = 3;  // for the rank that has locked the folder to make it again
  for (double waited = 0; ::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST; waited += detail::nap())
    if (errno != ENOENT || lock_ >= 0 || waited >= most_seconds) detail::fail_folder(folder, "the folder cannot be made");
  AtomicFile file(folder + "/" + shard_name(rank));
  WrittenFile written = shard.write(file);
  file.commit();
  return written;
}

SKEIN_INLINE void CommitFolder::replace(std::int64_t step) const {
  const std::string from = partial(step), to = commit(step);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (::rename(to.c_str(), before(step).c_str()) != 0) detail::fail_folder(from, "cannot be renamed to its final name");
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int error = errno;
  ::rename(before(step).c_str(), to.c_str());  // else the next lock() does it
  errno = error;
  detail::fail_folder(from, "cannot be renamed to its final name");
}

namespace detail {
/// Throws where the folder has not all that the ranks say they have written: one may have written into a folder of its own.
inline void check_shards(const std::string& folder, const std::vector<WrittenFile>& shards) {
  for (std::size_t r = 0; r < shards.size(); ++r) {
    const std::string shard = folder + "/" + shard_name(static_cast<int>(r));
    struct stat found {};
    const bool there = ::stat(shard.c_str(), &found) == 0;
    if (there && static_cast<std::uint64_t>(found.st_size) == shards[r].bytes) continue;
    if (!there && errno != ENOENT) fail_folder(shard, "what was written cannot be found again");
    throw FileError(shard, -1,
                    text("{}, and its rank has written {} bytes: the folder has to be on a file system that all ranks share, by "
                         "the same path, or it was changed meanwhile",
                         there ? text("has {} bytes", found.st_size) : "is not there", shards[r].bytes));
  }
}
}  // namespace detail

SKEIN_INLINE void CommitFolder::publish(std::int64_t step, const std::vector<WrittenFile>& shards, const FileMetadata& facts,
                                        int keep) const {
  const std::string from = partial(step);
  detail::check_shards(from, shards);
  manifest_of(shards, facts, from).commit(from + "/" + manifest_name);  // the folder too, with the names of the shards
  if (::rename(from.c_str(), commit(step).c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
      detail::fail_folder(from, "cannot be renamed to its final name");
    replace(step);  // there is one of this step, of a place within it or damaged, or what is no folder
  }
  detail::sync_folder(path_);
  try {
    int kept = 0;
    for (const std::int64_t other : steps())  // a later one has been skipped, since it is damaged: it does not count
      if (other <= step && ++kept > keep) ::rename(commit(other).c_str(), partial(other).c_str());  // half of one is no commit
    recover();
    sweep();
  } catch (const FileError&) {}  // this is a commit: what stays is swept by the next
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
