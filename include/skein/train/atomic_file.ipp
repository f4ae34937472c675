// SPDX-License-Identifier: Apache-2.0
// The bodies of atomic_file.hpp.
#pragma once
#include "atomic_file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE AtomicFile::AtomicFile(const std::string& path) : path_(path), partial_(path + ".partial") {
  do file_ = open_and_lock();
  while (file_ < 0);
  if (::ftruncate(file_, 0) != 0) fail_and_close("cannot be emptied");
}

SKEIN_INLINE AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::unlink(partial_.c_str());
  ::close(file_);
}

SKEIN_INLINE void AtomicFile::write_at(long long offset, const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::pwrite(file_, next, count < (1u << 30) ? count : (1u << 30), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(offset, "cannot be written");
    next += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
  if (offset > end_) end_ = offset;
}

SKEIN_INLINE void AtomicFile::commit() {
  if (::fsync(file_) != 0) fail(-1, "cannot be brought to the disk (fsync)");
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(-1, "cannot be renamed to its final name");
  ::close(file_);  // frees the lock: only now may another writer make a partial file
  file_ = -1;
  detail::sync_folder(detail::parent_of(path_));
}

SKEIN_INLINE void AtomicFile::fail(long long offset, const char* what) const {
  throw FileError(partial_, offset, std::string(what) + ": " + std::strerror(errno));
}

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
    if (errno == EWOULDBLOCK) fail_and_close("is being written by another process or thread");
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

SKEIN_INLINE void detail::sync_folder(const std::string& folder) {
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;  // a folder one may write but not read
  int result = 0;
  do result = ::fsync(handle);
  while (result != 0 && errno == EINTR);
  const int error = errno;
  ::close(handle);
  if (result != 0 && error != EINVAL && error != ENOTSUP)
    throw FileError(folder, -1, std::string("the folder cannot be brought to the disk: ") + std::strerror(error));
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
