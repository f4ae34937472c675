// SPDX-License-Identifier: Apache-2.0
// A file (or a block of memory that stands for one) that is read at offsets. It knows its size before anything is read, so
// that lengths in it can be checked first. Reads with pread rather than a mapping: a file that somebody cuts while it is
// mapped kills the process, here it is a FileError.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "error.hpp"

namespace skein::inline SKEIN_ABI {

/// Opens for reading; every failure is a FileError with path and offset.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  /// The bytes must outlive this object; the name stands for the path in messages.
  InputFile(std::span<const std::byte> bytes, std::string name);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::string& path() const { return path_; }
  long long size() const { return size_; }

  /// Fills the whole block or throws.
  void read_at(long long offset, void* bytes, std::size_t count) const;

 private:
  std::string path_;
  const std::byte* memory_ = nullptr;
  int file_ = -1;
  long long size_ = 0;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "input_file.ipp"
#endif
