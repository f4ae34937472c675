// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all: written beside its place as PATH.partial, synced, then renamed, and the folder
// synced. The rename is the commit point: a process that dies earlier leaves the old file as it was, and the next writer
// takes over what it left behind. A lock on the partial file keeps two writers of one path apart. A link at the path stays, the
// file that it names is replaced; and the new file has the permissions of the old one.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

namespace detail {
/// The folder that a path is in.
std::string parent_of(const std::string& path);
/// Brings the names of a folder to the disk, where it may be read. Throws FileError.
void sync_folder(const std::string& folder);
/// The path, or where the links at it lead to. Throws FileError for a link that somebody else may have put there: it is another
/// user's, in a folder in which all may write, such as /tmp.
std::string end_of_links(std::string path);
}  // namespace detail

/// Writes PATH so that readers see the old file or the new one. Every failure is a FileError, also one beyond the limit of file
/// sizes (ulimit -f), whose signal would end the process; without commit() nothing stays.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  long long size() const { return end_; }

  void append(const void* bytes, std::size_t count) { write_at(end_, bytes, count); }
  /// Where it throws, parts may be written: the file can then no longer be committed.
  void write_at(long long offset, const void* bytes, std::size_t count);

  /// Everything to the disk, as commit() begins: of several files first, so that little lies between their names. Throws
  /// FileError, also where a write failed before.
  void sync();
  /// Everything to the disk, then the new name, then the name to the disk. After it the old file is gone. Throws FileError, and
  /// leaves the old file, also where a write failed before.
  void commit();
  /// Whether it has its new name: commit() may still throw where that is not brought to the disk.
  bool committed() const { return file_ < 0; }

 private:
  [[noreturn]] void fail(long long offset, const char* what) const;
  [[noreturn]] void fail_and_close(const char* what);
  /// -1 where another writer renamed the file between our open and our lock: try again.
  int open_and_lock();

  std::string path_, partial_;
  int file_ = -1, mode_ = -1;  // of the old file, where there is one
  long long end_ = 0;
  bool broken_ = false;  // by a write that failed
};

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "atomic_file.ipp"
#endif
