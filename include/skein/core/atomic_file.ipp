// SPDX-License-Identifier: Apache-2.0
// The bodies of atomic_file.hpp.
#pragma once
#include <climits>

#include "atomic_file.hpp"
#include "no_size_signal.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace detail {
/// fsync, until no signal interrupts it.
inline int sync(int file) {
  int result = 0;
  do result = ::fsync(file);
  while (result != 0 && errno == EINTR);
  return result;
}
}  // namespace detail

SKEIN_INLINE AtomicFile::AtomicFile(const std::string& path) : path_(detail::end_of_links(path)), partial_(path_ + ".partial") {
  if (path.empty()) throw ArgumentError("a file that is to be written has an empty path");
  struct stat old {};
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) throw FileError(path_, -1, "is no plain file");
  do file_ = open_and_lock();
  while (file_ < 0);
  if (replaces) mode_ = static_cast<int>(old.st_mode & 0777);
  // Before anything is in it; not of one that another user left behind. To be written, also by the next writer.
  if (replaces) (void)::fchmod(file_, static_cast<mode_t>(mode_ | 0600));
  int result = 0;
  do result = ::ftruncate(file_, 0);
  while (result != 0 && errno == EINTR);
  if (result == 0) return;
  const int error = errno;
  ::unlink(partial_.c_str());
  errno = error;
  fail_and_close("cannot be emptied");
}

SKEIN_INLINE AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::unlink(partial_.c_str());
  ::close(file_);
}

SKEIN_INLINE void AtomicFile::write_at(long long offset, const void* bytes, std::size_t count) {
  const detail::NoSizeSignal quiet;
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::pwrite(file_, next, count < (1u << 30) ? count : (1u << 30), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // which no disk does
    if (n <= 0) {
      broken_ = true;
      fail(offset, "cannot be written");
    }
    next += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
  if (offset > end_) end_ = offset;
}

SKEIN_INLINE void AtomicFile::sync() {
  if (broken_) throw FileError(path_, -1, "stays as it was: not all of its new contents could be written");
  if (mode_ >= 0 && (mode_ | 0600) != mode_) (void)::fchmod(file_, static_cast<mode_t>(mode_));
  if (detail::sync(file_) != 0) fail(-1, "cannot be brought to the disk (fsync)");
}

SKEIN_INLINE void AtomicFile::commit() {
  sync();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(-1, "cannot be renamed to its final name");
  ::close(file_);  // frees the lock: only now may another writer make a partial file
  file_ = -1;
  detail::sync_folder(detail::parent_of(path_));
}

SKEIN_INLINE void AtomicFile::fail(long long offset, const char* what) const { throw FileError(partial_, offset, what, errno); }

SKEIN_INLINE void AtomicFile::fail_and_close(const char* what) {
  const int error = errno;
  ::close(std::exchange(file_, -1));
  errno = error;
  fail(-1, what);
}

SKEIN_INLINE int AtomicFile::open_and_lock() {
  file_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file_ < 0) fail(-1, "cannot be created");
  while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      fail_and_close("is being written by another process or thread; if the ranks of one job write it, let rank 0 do so");
    if (errno != EINTR) break;  // a file system without locks
  }
  struct stat ours {
  }, named{};
  if (::fstat(file_, &ours) == 0 && ::stat(partial_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
      ours.st_dev == named.st_dev)
    return file_;
  ::close(std::exchange(file_, -1));
  return -1;
}

SKEIN_INLINE std::string detail::parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

SKEIN_INLINE std::string detail::end_of_links(std::string path) {
  struct stat link {
  }, folder{};
  for (int links = 0; ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode); ++links) {
    char target[PATH_MAX];
    const ssize_t length = links < 40 ? ::readlink(path.c_str(), target, sizeof target) : -1;
    if (length <= 0 || length == static_cast<ssize_t>(sizeof target)) throw FileError(path, -1, "is a link that leads nowhere");
    const std::string parent = parent_of(path);
    if (::stat(parent.c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH) &&
        link.st_uid != ::geteuid() && link.st_uid != folder.st_uid)
      throw FileError(path, -1, "is another user's link in a folder in which all may write: it is not followed");
    const std::string to(target, static_cast<std::size_t>(length));
    path = to.front() == '/' ? to : parent + "/" + to;
  }
  return path;
}

SKEIN_INLINE void detail::sync_folder(const std::string& folder) {
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0 && errno == EACCES) return;  // a folder one may write but not read
  const int result = handle < 0 ? -1 : detail::sync(handle), error = errno;
  if (handle >= 0) ::close(handle);
  if (result != 0 && error != EINVAL && error != ENOTSUP)
    throw FileError(folder, -1, "the folder cannot be brought to the disk", error);
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
